import asyncio
import gc
from collections.abc import Iterator

import pytest

from kubeslurm.engine.controller import Controller
from kubeslurm.engine.key import Key
from kubeslurm.engine.manager import Manager
from kubeslurm.engine.store import Store

pytestmark = pytest.mark.looptime


@pytest.fixture(autouse=True)
def _unfreeze() -> Iterator[None]:
    yield
    gc.unfreeze()


class Feed:
    """A source that needs some seconds for its first list, then runs on, or fails with the given error."""

    def __init__(self, store: Store[str, str], seconds: float, error: Exception | None = None) -> None:
        self.store = store
        self.seconds = seconds
        self.error = error
        self.cancelled_at = 0.0
        store.await_source("feed")

    async def run(self) -> None:
        await asyncio.sleep(self.seconds)
        self.store.put("object")
        self.store.mark_synced("feed")
        if self.error is not None:
            await asyncio.sleep(10)
            raise self.error
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled_at = asyncio.get_running_loop().time()


class Recorder:
    """A reconcile function that records when it started and finished."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.started: list[float] = []
        self.finished: list[float] = []
        self.seconds = seconds

    async def reconcile(self, _key: Key) -> None:
        loop = asyncio.get_running_loop()
        self.started.append(loop.time())
        await asyncio.sleep(self.seconds)
        self.finished.append(loop.time())


def wired(recorder: Recorder, feed: Feed, manager: Manager) -> Controller:
    controller = Controller("managed", recorder.reconcile)
    controller.watch(feed.store, lambda name: [Key("", name)])
    manager.add_source("feed", feed)
    manager.add_store("things", feed.store)
    manager.add_controller(controller)
    return controller


async def test_controllers_start_only_after_all_stores_have_synced() -> None:
    slow: Store[str, str] = Store(str)
    manager, recorder = Manager(), Recorder()
    feed = Feed(Store(str), 3)
    wired(recorder, feed, manager)
    manager.add_source("slow", Feed(slow, 20))
    manager.add_store("slow", slow)
    started = asyncio.get_running_loop().time()
    running = asyncio.create_task(manager.run())
    await asyncio.sleep(10)
    assert manager.unsynced == ["slow"]
    await asyncio.sleep(15)
    assert manager.unsynced == []
    assert recorder.started == [pytest.approx(started + 20)]
    manager.stop()
    await running


async def test_the_objects_of_the_first_list_are_excluded_from_garbage_collection() -> None:
    manager, recorder = Manager(), Recorder()
    wired(recorder, Feed(Store(str), 1), manager)
    running = asyncio.create_task(manager.run())
    await asyncio.sleep(2)
    assert gc.get_freeze_count() > 0
    manager.stop()
    await running


async def test_a_replica_that_is_not_the_leader_fills_its_stores_and_does_not_act() -> None:
    leading = asyncio.Event()

    async def gate() -> None:
        await leading.wait()

    manager, recorder = Manager(gate=gate), Recorder()
    wired(recorder, Feed(Store(str), 1), manager)
    running = asyncio.create_task(manager.run())
    await asyncio.sleep(60)
    assert manager.unsynced == []
    assert recorder.started == []
    leading.set()
    await asyncio.sleep(1)
    assert len(recorder.started) == 1
    manager.stop()
    await running


async def test_a_graceful_stop_finishes_running_passes_before_the_sources_end() -> None:
    manager, recorder = Manager(grace=20), Recorder(seconds=10)
    feed = Feed(Store(str), 1)
    wired(recorder, feed, manager)
    running = asyncio.create_task(manager.run())
    await asyncio.sleep(5)
    manager.stop()
    await running
    assert len(recorder.finished) == 1
    assert feed.cancelled_at >= recorder.finished[0]


async def test_a_stop_before_the_first_sync_ends_at_once() -> None:
    manager, recorder = Manager(), Recorder()
    wired(recorder, Feed(Store(str), 1000), manager)
    running = asyncio.create_task(manager.run())
    await asyncio.sleep(5)
    manager.stop()
    await asyncio.wait_for(running, 1)


async def test_a_failing_source_ends_the_manager_without_grace() -> None:
    manager, recorder = Manager(grace=20), Recorder(seconds=1000)
    wired(recorder, Feed(Store(str), 1, error=RuntimeError("leadership lost")), manager)
    with pytest.raises(RuntimeError, match="leadership lost"):
        await manager.run()
    assert recorder.started
    assert not recorder.finished


async def test_a_source_that_ends_without_an_error_ends_the_manager_too() -> None:
    class Short:
        async def run(self) -> None:
            await asyncio.sleep(1)

    manager = Manager()
    manager.add_source("short", Short())
    with pytest.raises(RuntimeError, match="short ended"):
        await manager.run()
