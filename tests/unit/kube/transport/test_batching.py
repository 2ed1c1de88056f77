"""When the system is asked to hold back the bytes of a stream."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from kubeslurm.kube.transport.batching import FIRST, LONGEST, PLENTY, gathered

pytestmark = pytest.mark.looptime


class Stream:
    """Pieces that come after the given pauses, and what was asked of the system meanwhile."""

    def __init__(self, *pauses: float, size: int = 5) -> None:
        self.pauses = pauses
        self.size = size
        self.asked: list[tuple[float, int]] = []
        self.came: list[float] = []

    async def pieces(self) -> AsyncIterator[bytes]:
        for pause in self.pauses:
            await asyncio.sleep(pause)
            yield bytes(self.size)

    def wake_at(self, size: int) -> None:
        self.asked.append((self.now, size))

    @property
    def now(self) -> float:
        return round(asyncio.get_running_loop().time(), 6)

    async def follow(self, handling: float = 0.0) -> None:
        async for _ in gathered(self.pieces(), self.wake_at):
            self.came.append(self.now)
            await asyncio.sleep(handling)
        await asyncio.sleep(1)


async def test_a_quiet_stream_is_left_alone() -> None:
    stream = Stream(1, FIRST, 1)
    await stream.follow()
    assert (len(stream.came), stream.asked) == (3, [])


async def test_after_two_pieces_in_quick_succession_the_next_are_gathered_for_a_moment() -> None:
    stream = Stream(1, 0.002)
    await stream.follow()
    assert stream.asked == [(1.002, PLENTY), (round(1.002 + FIRST, 6), 1)]


async def test_the_longer_a_stream_is_busy_the_longer_its_pieces_are_gathered_up_to_a_limit() -> None:
    stream = Stream(1, 0.002, FIRST, 2 * FIRST, LONGEST, LONGEST)
    await stream.follow()
    begun = [when for when, size in stream.asked if size == PLENTY]
    ended = [when for when, size in stream.asked if size == 1]
    assert begun == stream.came[1:]
    pauses = [round(end - begin, 6) for begin, end in zip(begun, ended, strict=True)]
    assert pauses == [FIRST, 2 * FIRST, LONGEST, LONGEST, LONGEST]


async def test_a_stream_that_brings_plenty_each_time_is_left_alone() -> None:
    stream = Stream(1, 0.002, 0.002, size=PLENTY)
    await stream.follow()
    assert stream.asked == []


async def test_a_stream_that_was_quiet_for_a_while_begins_anew() -> None:
    stream = Stream(1, 0.002, FIRST, 1, 0.002)
    await stream.follow()
    assert [when for when, size in stream.asked if size == PLENTY] == [1.002, 1.012, 2.014]
    assert stream.asked[-1] == (round(2.014 + FIRST, 6), 1)


async def test_plenty_of_bytes_before_a_pause_is_over_begin_a_new_one() -> None:
    stream = Stream(1, 0.002, 0.002, 0.002)
    await stream.follow()
    assert [size for _, size in stream.asked] == [PLENTY, PLENTY, PLENTY, 1]
    assert stream.asked[-1] == (round(1.006 + LONGEST, 6), 1)


async def test_time_spent_on_a_piece_does_not_make_the_stream_quiet() -> None:
    stream = Stream(1, 0.002)
    await stream.follow(handling=1)
    assert [size for _, size in stream.asked] == [PLENTY, 1]
