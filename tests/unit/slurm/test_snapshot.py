"""The snapshot of nodes: what it takes from lists, how it ages, when it is polled."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from kubeslurm.slurm.errors import Unreachable
from kubeslurm.slurm.rest.models import Node
from kubeslurm.slurm.snapshot import FULL_LIST_INTERVAL, INTERVAL, MAX_PAUSE, MAX_RETRY_PAUSE, Snapshot
from tests.support.clock import HandClock
from tests.unit.slurm.script import A, B, Script, listed, make

MANY = listed(*(Node(name=f"n{number}", state=("IDLE",)) for number in range(1000)))


async def test_before_the_first_answer_nothing_is_fresh() -> None:
    snapshot, _, _ = make()
    assert snapshot.age() == float("inf")
    assert not snapshot.fresh()
    assert snapshot.failure


async def test_an_older_list_never_comes_after_a_newer_one() -> None:
    snapshot, script, _ = make()
    script.lists = [listed(A), listed(A, B, at=2)]
    first = asyncio.Event()

    async def slow() -> None:
        if len(script.since) == 1:
            await first.wait()

    script.meanwhile = slow
    polls = [asyncio.create_task(snapshot.poll()) for _ in range(2)]
    await asyncio.sleep(0)
    first.set()
    await asyncio.gather(*polls)
    assert script.since == [None, 1]  # the second began when the first was over


async def test_only_changes_reach_the_listeners() -> None:
    snapshot, script, _ = make()
    changes: list[tuple[str, bool]] = []
    snapshot.store.subscribe(lambda key, old, new: changes.append((key, new is not None)))
    script.lists = [listed(A, B), listed(A, B), listed(Node(name="a", state=("MIXED",)))]
    await snapshot.poll()
    assert changes == [("a", True), ("b", True)]
    await snapshot.poll()
    assert len(changes) == 2
    await snapshot.poll()
    assert changes[2:] == [("a", True), ("b", False)]


async def test_an_unchanged_answer_confirms_what_is_known() -> None:
    snapshot, script, clock = make()
    script.lists = [listed(A, at=7), None]
    await snapshot.poll()
    clock.now += 4
    assert snapshot.age() == 4
    assert await snapshot.poll() == INTERVAL
    assert script.since == [None, 7]
    assert snapshot.age() == 0
    assert "a" in snapshot.store


async def test_the_pause_after_a_costly_list_is_five_times_its_cost() -> None:
    snapshot, script, _ = make()
    script.cost = 0.3
    script.lists = [MANY] * 2
    assert round(await snapshot.poll(), 6) == 1.5
    script.cost = 30.0
    assert await snapshot.poll() == MAX_PAUSE


async def test_a_short_list_is_soon_asked_for_again_however_long_it_took() -> None:
    snapshot, script, _ = make()
    script.cost = 3.0
    script.lists = [listed(A, B)]
    assert await snapshot.poll() == INTERVAL


async def test_a_failure_makes_it_stale_but_keeps_what_was_known() -> None:
    snapshot, script, _ = make()
    script.lists = [listed(A), *[Unreachable("gone")] * 8, listed(A)]
    heard: list[bool] = []
    snapshot.on_health(lambda: heard.append(snapshot.fresh()))
    await snapshot.poll()
    pauses = [await snapshot.poll() for _ in range(8)]
    assert not snapshot.fresh()
    assert snapshot.failure == "gone"
    assert "a" in snapshot.store
    assert pauses[0] == INTERVAL
    assert pauses[-1] == MAX_RETRY_PAUSE
    await snapshot.poll()
    assert snapshot.fresh()
    assert heard == [True, False, True]


async def test_an_old_snapshot_is_not_fresh_even_without_a_failure() -> None:
    snapshot, script, clock = make()
    script.lists = [listed(A)]
    await snapshot.poll()
    clock.now += 6
    assert not snapshot.fresh()


async def test_the_time_that_the_machine_was_suspended_counts_as_age() -> None:
    clock, suspended = HandClock(), HandClock()
    script = Script(clock)
    client: Any = script
    snapshot = Snapshot(client, clock=clock, time_suspended=suspended)
    script.lists = [listed(A), None]
    await snapshot.poll()
    assert snapshot.fresh()
    suspended.now += 3600
    assert snapshot.age() == 3600
    assert not snapshot.fresh()
    await snapshot.poll()
    assert snapshot.fresh()


async def test_a_full_list_is_asked_for_now_and_then_even_if_nothing_changes() -> None:
    snapshot, script, clock = make()
    script.lists = [listed(A, at=7), None, listed(A, at=8)]
    await snapshot.poll()
    clock.now += 1
    await snapshot.poll()
    clock.now += FULL_LIST_INTERVAL
    await snapshot.poll()
    assert script.since == [None, 7, None]


@pytest.mark.looptime
async def test_the_pause_after_a_costly_list_is_short_while_somebody_waits() -> None:
    loop = asyncio.get_running_loop()
    script = Script(HandClock())
    script.lists = [MANY] * 3
    asked: list[float] = []

    async def answer() -> None:
        asked.append(round(loop.time(), 3))
        await asyncio.sleep(0.3)

    script.meanwhile = answer
    client: Any = script
    snapshot = Snapshot(client, clock=loop.time, time_suspended=lambda: 0.0)
    start = loop.time()
    poller = loop.create_task(snapshot.run())
    await asyncio.sleep(0.1)
    snapshot.poll_soon()  # while a list is on its way, which may be too old
    await asyncio.sleep(2.9)
    poller.cancel()
    assert [round(at - start, 3) for at in asked] == [0.0, 0.6, 2.4]


@pytest.mark.looptime
async def test_a_listener_that_fails_does_not_end_the_poller() -> None:
    snapshot, script, _ = make()
    script.lists = [listed(A), listed(B)]
    recovered = asyncio.Event()

    def listen(key: str, _old: Node | None, new: Node | None) -> None:
        if key == "b":
            recovered.set()
        elif new is not None:
            raise RuntimeError("oops")

    snapshot.store.subscribe(listen)
    with capture_logs() as logs:
        poller = asyncio.get_running_loop().create_task(snapshot.run())
        await asyncio.wait_for(recovered.wait(), 30)
        poller.cancel()
    assert [entry["event"] for entry in logs] == ["polling Slurm failed"]
