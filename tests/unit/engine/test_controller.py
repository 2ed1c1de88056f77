import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import structlog.testing
from prometheus_client import REGISTRY

from kubeslurm.engine.context import add_pass
from kubeslurm.engine.controller import Controller, Reconcile, Requeue, Retry, Terminal
from kubeslurm.engine.key import Key
from kubeslurm.engine.store import Store

pytestmark = pytest.mark.looptime

A = Key("ns", "a")
Pass = Callable[[int], Awaitable[Requeue | None]]


class Script:
    """A reconcile function with a given outcome per pass, which records when it was called."""

    def __init__(self, *outcomes: Requeue | Exception | None) -> None:
        self.outcomes = list(outcomes)
        self.calls: list[tuple[Key, float]] = []

    async def __call__(self, key: Key) -> Requeue | None:
        self.calls.append((key, asyncio.get_running_loop().time()))
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    @property
    def gaps(self) -> list[float]:
        times = [time for _, time in self.calls]
        return [round(later - earlier, 3) for earlier, later in itertools.pairwise(times)]


async def run(controller: Controller, seconds: float) -> None:
    task = asyncio.create_task(controller.run())
    await asyncio.sleep(seconds)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def outcomes(name: str, outcome: str) -> float:
    return REGISTRY.get_sample_value("kubeslurm_reconciles_total", {"controller": name, "outcome": outcome}) or 0


async def test_a_finished_key_is_not_reconciled_again() -> None:
    script = Script(None)
    controller = Controller("finished", script)
    controller.enqueue(A)
    await run(controller, 1000)
    assert len(script.calls) == 1
    assert outcomes("finished", "done") == 1


async def test_a_requeue_comes_after_its_time() -> None:
    script = Script(Requeue(after=30), None)
    controller = Controller("requeued", script)
    controller.enqueue(A)
    await run(controller, 100)
    assert script.gaps == [30]
    assert outcomes("requeued", "requeue") == 1


async def test_an_error_is_logged_with_its_cause_and_tried_again_with_back_off() -> None:
    script = Script(ValueError("boom"), ValueError("boom"), None)
    controller = Controller("failing", script)
    controller.enqueue(A)
    with structlog.testing.capture_logs() as logs:
        await run(controller, 100)
    assert script.gaps == [0.2, 0.4]
    errors = [entry for entry in logs if entry["log_level"] == "error"]
    assert [entry["error"] for entry in errors] == ["ValueError: boom"] * 2
    assert outcomes("failing", "error") == 2


async def test_an_expected_failure_is_tried_again_without_an_error_in_the_log() -> None:
    script = Script(Retry("conflict"), Retry("slow down", after=5), None)
    controller = Controller("retrying", script)
    controller.enqueue(A)
    with structlog.testing.capture_logs() as logs:
        await run(controller, 100)
    assert script.gaps == [0.2, 5]
    assert not [entry for entry in logs if entry["log_level"] in ("error", "warning")]
    assert outcomes("retrying", "retry") == 2


async def test_a_terminal_failure_waits_for_the_object_to_change() -> None:
    script = Script(Terminal("invalid"), None)
    controller = Controller("terminal", script)
    controller.enqueue(A)
    task = asyncio.create_task(controller.run())
    await asyncio.sleep(1000)
    assert len(script.calls) == 1
    controller.enqueue(A)
    await asyncio.sleep(1)
    assert len(script.calls) == 2
    await controller.drain(1)
    await task


async def test_a_pass_that_is_put_off_does_not_reset_the_back_off() -> None:
    put_off = Requeue(after=1, resets_backoff=False)
    script = Script(ValueError("boom"), put_off, ValueError("boom"), put_off, ValueError("boom"), None)
    controller = Controller("put-off", script)
    controller.enqueue(A)
    with structlog.testing.capture_logs():
        await run(controller, 100)
    assert script.gaps == [0.2, 1, 0.4, 1, 0.8]


async def test_success_resets_the_back_off() -> None:
    script = Script(Retry(), Retry(), None, Retry(), None)
    controller = Controller("reset", script)
    controller.enqueue(A)
    task = asyncio.create_task(controller.run())
    await asyncio.sleep(10)
    controller.enqueue(A)
    await asyncio.sleep(10)
    assert script.gaps[-1] == 0.2
    await controller.drain(1)
    await task


async def test_a_change_is_mapped_to_keys_before_and_after() -> None:
    script = Script()
    store: Store[str, tuple[str, str]] = Store(lambda pair: pair[0])
    store.put(("pod", "was-there"))
    store.mark_synced()
    controller = Controller("mapped", script)
    controller.watch(store, lambda pair: [Key("ns", pair[1])])
    store.put(("pod", "first"))
    store.put(("pod", "second"))
    store.remove("pod")
    await run(controller, 1)
    assert [key.name for key, _ in script.calls] == ["was-there", "first", "second"]


async def test_changes_go_before_the_first_list() -> None:
    script = Script()
    store: Store[str, str] = Store(str)
    controller = Controller("priority", script, concurrency=1)
    controller.watch(store, lambda name: [Key("", name)])
    store.put("listed")
    store.mark_synced()
    store.put("changed")
    await run(controller, 1)
    assert [str(key) for key, _ in script.calls] == ["changed", "listed"]


def blocking(release: asyncio.Event, finished: list[Key]) -> Reconcile:
    async def reconcile(key: Key) -> None:
        await release.wait()
        finished.append(key)

    return reconcile


async def test_draining_lets_a_running_pass_finish_and_starts_no_other() -> None:
    release, finished = asyncio.Event(), list[Key]()
    controller = Controller("draining", blocking(release, finished), concurrency=1)
    controller.enqueue(A)
    controller.enqueue(Key("ns", "b"))
    task = asyncio.create_task(controller.run())
    await asyncio.sleep(1)
    asyncio.get_running_loop().call_later(5, release.set)
    assert await controller.drain(grace=10)
    await task
    assert finished == [A]


async def test_draining_cancels_a_pass_that_exceeds_the_grace() -> None:
    finished: list[Key] = []
    controller = Controller("stuck", blocking(asyncio.Event(), finished))
    controller.enqueue(A)
    task = asyncio.create_task(controller.run())
    await asyncio.sleep(1)
    assert not await controller.drain(grace=10)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert finished == []


@pytest.mark.looptime(False)  # this test needs real time
async def test_passes_that_await_nothing_do_not_block_the_loop() -> None:
    def busy(seconds: float) -> None:
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            pass

    passes, seen = 0, []

    async def reconcile(_key: Key) -> None:
        nonlocal passes
        passes += 1
        busy(0.002)

    async def other() -> None:
        while passes < 100:
            seen.append(passes)
            await asyncio.sleep(0)

    controller = Controller("quick", reconcile, concurrency=1)
    for number in range(100):
        controller.enqueue(Key("ns", str(number)))
    task = asyncio.create_task(controller.run())
    await other()
    task.cancel()
    assert len(set(seen)) > 10


async def test_each_pass_is_logged_with_controller_key_and_number() -> None:
    contexts: list[Any] = []

    async def reconcile(_key: Key) -> None:
        contexts.append(add_pass(None, "info", {"event": "text"}))

    controller = Controller("context", reconcile)
    controller.enqueue(A)
    await run(controller, 1)
    assert contexts[0]["controller"] == "context"
    assert contexts[0]["key"] == "ns/a"
    assert contexts[0]["reconcile_id"] > 0
    assert add_pass(None, "info", {"event": "text"}) == {"event": "text"}, "outside a pass nothing is added"
