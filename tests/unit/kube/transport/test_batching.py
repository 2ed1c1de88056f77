"""When the kernel is told to hold back the bytes of a stream."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from kubeslurm.kube.transport.batching import FULL, LONGEST, SHORTEST, batched

pytestmark = pytest.mark.looptime


class Stream:
    """Chunks that arrive after the given pauses, and what the kernel was told meanwhile."""

    def __init__(self, *pauses: float, size: int = 5) -> None:
        self.pauses = pauses
        self.size = size
        self.thresholds: list[tuple[float, int]] = []
        self.arrived: list[float] = []

    async def chunks(self) -> AsyncIterator[bytes]:
        for pause in self.pauses:
            await asyncio.sleep(pause)
            yield bytes(self.size)

    def wake_at(self, size: int) -> None:
        self.thresholds.append((self.now, size))

    @property
    def now(self) -> float:
        return round(asyncio.get_running_loop().time(), 6)

    async def follow(self, handling: float = 0.0) -> None:
        async for _ in batched(self.chunks(), self.wake_at):
            self.arrived.append(self.now)
            await asyncio.sleep(handling)
        await asyncio.sleep(1)


async def test_a_quiet_stream_is_not_batched() -> None:
    stream = Stream(1, SHORTEST, 1)
    await stream.follow()
    assert (len(stream.arrived), stream.thresholds) == (3, [])


async def test_after_two_quick_chunks_the_next_are_batched_for_a_moment() -> None:
    stream = Stream(1, 0.002)
    await stream.follow()
    assert stream.thresholds == [(1.002, FULL), (round(1.002 + SHORTEST, 6), 1)]


async def test_the_longer_a_stream_is_busy_the_longer_its_batches_up_to_a_limit() -> None:
    stream = Stream(1, 0.002, SHORTEST, 2 * SHORTEST, LONGEST, LONGEST)
    await stream.follow()
    started = [when for when, size in stream.thresholds if size == FULL]
    ended = [when for when, size in stream.thresholds if size == 1]
    assert started == stream.arrived[1:]
    pauses = [round(end - start, 6) for start, end in zip(started, ended, strict=True)]
    assert pauses == [SHORTEST, 2 * SHORTEST, LONGEST, LONGEST, LONGEST]


async def test_a_stream_of_large_chunks_is_not_batched() -> None:
    stream = Stream(1, 0.002, 0.002, size=FULL)
    await stream.follow()
    assert stream.thresholds == []


async def test_after_a_quiet_time_batching_starts_over() -> None:
    stream = Stream(1, 0.002, SHORTEST, 1, 0.002)
    await stream.follow()
    assert [when for when, size in stream.thresholds if size == FULL] == [1.002, 1.012, 2.014]
    assert stream.thresholds[-1] == (round(2.014 + SHORTEST, 6), 1)


async def test_a_batch_that_is_complete_before_its_pause_ends_starts_the_next() -> None:
    stream = Stream(1, 0.002, 0.002, 0.002)
    await stream.follow()
    assert [size for _, size in stream.thresholds] == [FULL, FULL, FULL, 1]
    assert stream.thresholds[-1] == (round(1.006 + LONGEST, 6), 1)


async def test_time_spent_on_a_chunk_does_not_make_the_stream_quiet() -> None:
    stream = Stream(1, 0.002)
    await stream.follow(handling=1)
    assert [size for _, size in stream.thresholds] == [FULL, 1]
