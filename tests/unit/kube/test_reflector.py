import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from prometheus_client import REGISTRY

from kubeslurm.api.kinds import POD
from kubeslurm.api.views import Pod
from kubeslurm.engine.key import Key
from kubeslurm.engine.store import Store
from kubeslurm.kube import reflector as module
from kubeslurm.kube.objects import kube_store
from kubeslurm.kube.reflector import Reflector
from tests.support.fake_apiserver import FakeApiServer, encode, pod

pytestmark = pytest.mark.looptime

A = Key("ns", "a")


class Follower:
    """A reflector at work, with what its store was told."""

    def __init__(self, server: FakeApiServer, **options: Any) -> None:
        self.store: Store[Key, Pod] = kube_store()
        self.changes: list[tuple[str, str]] = []
        self.store.subscribe(self._note)
        self.reflector = Reflector(POD, self.store, server.connection(), **options)

    def _note(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        what = "added" if old is None else "deleted" if new is None else "changed"
        self.changes.append((what, key.name))

    @property
    def names(self) -> set[str]:
        return {each.name for each in self.store}


@asynccontextmanager
async def following(server: FakeApiServer, **options: Any) -> AsyncIterator[Follower]:
    follower = Follower(server, **options)
    task = asyncio.create_task(follower.reflector.run())
    try:
        yield follower
    finally:
        assert not task.done(), "a reflector never ends by itself"
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def restarts(cause: str) -> float:
    return REGISTRY.get_sample_value("kubeslurm_watch_restarts_total", {"kind": "Pod", "cause": cause}) or 0


async def test_the_first_state_is_streamed_and_then_followed() -> None:
    server = FakeApiServer()
    await server.put(pod("a"))
    async with following(server) as follower:
        await follower.store.wait_synced()
        assert follower.names == {"a"}
        await server.put(pod("b"))
        await server.put(pod("a", labels={"x": "y"}))
        await server.remove("b")
        await asyncio.sleep(0.1)
        assert follower.changes == [("added", "a"), ("added", "b"), ("changed", "a"), ("deleted", "b")]
        assert follower.store[A].metadata.labels == {"x": "y"}
    assert len(server.requests) == 1
    params = server.requests[0].url.params
    assert params["sendInitialEvents"] == "true"
    assert params["resourceVersionMatch"] == "NotOlderThan"
    assert params["allowWatchBookmarks"] == "true"
    assert 300 <= int(params["timeoutSeconds"]) <= 600


async def test_a_server_without_watch_list_is_listed_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE", 2)
    server = FakeApiServer()
    server.watch_list = False
    for name in "abcde":
        await server.put(pod(name))
    async with following(server) as follower:
        await follower.store.wait_synced()
        assert follower.names == set("abcde")
        await server.remove("c")
        await asyncio.sleep(1)
        assert follower.names == set("abde")
    lists = [request for request in server.requests if request.url.params.get("limit")]
    assert len(lists) == 3


async def test_a_page_token_that_expires_starts_the_list_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE", 1)
    server = FakeApiServer()
    server.watch_list = False
    for name in "abc":
        await server.put(pod(name))
    async with following(server) as follower:
        while server.count("GET", "continue=") == 0:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await server.put(pod("d"))
        server.compact()
        await asyncio.sleep(10)
        assert follower.names == set("abcd")


async def test_a_cut_in_the_middle_of_a_line_loses_nothing() -> None:
    server = FakeApiServer()
    await server.put(pod("a"))
    async with following(server) as follower:
        await follower.store.wait_synced()
        await server.cut()
        await server.put(pod("b"))
        await server.remove("a")
        await asyncio.sleep(2)
        assert follower.names == {"b"}
    assert server.count("GET", "resourceVersion=101") == 1, "the watch went on where it was"
    assert server.count("GET", "sendInitialEvents") == 1


@pytest.mark.parametrize("where", ["in the stream", "as a status"])
async def test_an_expired_version_gives_a_fresh_list_and_the_deletions_of_the_gap(where: str) -> None:
    server = FakeApiServer()
    for name in "abc":
        await server.put(pod(name))
    async with following(server) as follower:
        await follower.store.wait_synced()
        follower.changes.clear()
        server.frozen = True
        await server.remove("b")
        await server.put(pod("c", labels={"new": "yes"}))
        await server.put(pod("d"))
        server.compact()
        if where == "as a status":
            await server.cut()
        server.frozen = False
        await server.bookmark()
        await asyncio.sleep(5)
        assert follower.names == {"a", "c", "d"}
        assert sorted(follower.changes) == [("added", "d"), ("changed", "c"), ("deleted", "b")]
    assert server.count("GET", "sendInitialEvents") == 2


async def test_bookmarks_move_the_version_from_which_the_watch_goes_on() -> None:
    server = FakeApiServer()
    async with following(server) as follower:
        await follower.store.wait_synced()
        await server.bookmark(4711)
        await asyncio.sleep(0.1)
        await server.cut()
        await asyncio.sleep(2)
    assert server.count("GET", "resourceVersion=4711") == 1


async def test_silence_is_taken_for_a_dead_connection() -> None:
    server = FakeApiServer()
    async with following(server) as follower:
        await follower.store.wait_synced()
        server.frozen = True
        await server.put(pod("a"))
        await asyncio.sleep(70)
        assert follower.names == set()
        server.frozen = False
        await asyncio.sleep(25)
        assert follower.names == {"a"}
    assert server.count("GET", "watch=true") == 2


async def test_refusals_are_retried_with_growing_pauses() -> None:
    server = FakeApiServer()
    server.fail(500, times=6)
    async with following(server) as follower:
        loop = asyncio.get_running_loop()
        started = loop.time()
        await follower.store.wait_synced()
        assert 0.4 * (2**6 - 1) <= loop.time() - started <= 0.8 * (2**6 - 1)
    assert len(server.requests) == 7


async def test_a_throttled_watch_waits_as_long_as_the_server_asks() -> None:
    server = FakeApiServer()
    server.fail(429, Retry_After="45")
    async with following(server) as follower:
        loop = asyncio.get_running_loop()
        started = loop.time()
        await follower.store.wait_synced()
        assert loop.time() - started >= 45


async def test_an_endless_410_is_no_hot_loop() -> None:
    server = FakeApiServer()
    server.fail(410, times=1000)
    async with following(server):
        await asyncio.sleep(60)
    assert len(server.requests) < 12


async def test_a_server_that_is_away_is_waited_for() -> None:
    server = FakeApiServer()
    await server.put(pod("a"))
    async with following(server) as follower:
        await follower.store.wait_synced()
        server.fail(0, times=3)
        await server.cut()
        await server.remove("a")
        await asyncio.sleep(30)
        assert follower.names == set()


async def test_an_undecodable_object_is_skipped_and_counted() -> None:
    server = FakeApiServer()
    await server.put(pod("a"))
    before = REGISTRY.get_sample_value("kubeslurm_decode_failures_total", {"kind": "Pod"}) or 0
    async with following(server) as follower:
        await follower.store.wait_synced()
        await server.put(pod("bad") | {"spec": {"nodeName": 5}})
        await server.send(b"this is not JSON")
        await server.put(pod("b"))
        await asyncio.sleep(0.1)
        assert follower.names == {"a", "b"}
    assert REGISTRY.get_sample_value("kubeslurm_decode_failures_total", {"kind": "Pod"}) == before + 2
    assert len(server.requests) == 1


async def test_an_object_that_has_become_undecodable_stays_as_it_was_known() -> None:
    server = FakeApiServer()
    await server.put(pod("a"))
    async with following(server) as follower:
        await follower.store.wait_synced()
        await server.put(pod("a") | {"spec": {"nodeName": 5}})
        server.compact()
        await server.cut()
        await asyncio.sleep(5)
        assert follower.names == {"a"}


async def test_unusual_line_separators_in_annotations_do_not_split_a_line() -> None:
    server = FakeApiServer()
    strange = "next\u0085line\u2028separator\r"
    async with following(server) as follower:
        await follower.store.wait_synced()
        await server.put(pod("a", annotations={"strange": strange}))
        await asyncio.sleep(0.1)
        assert follower.store[A].metadata.annotations == {"strange": strange}
    assert len(server.requests) == 1


async def test_an_event_written_in_another_order_is_understood() -> None:
    server = FakeApiServer()
    async with following(server) as follower:
        await follower.store.wait_synced()
        tree = pod("a", resourceVersion="200", uid="u")
        await server.send(b'{ "object": ' + encode(tree) + b', "type": "ADDED" }')
        await asyncio.sleep(0.1)
        assert follower.names == {"a"}


async def test_two_namespaces_share_a_store_without_deleting_each_others_objects() -> None:
    server = FakeApiServer()
    await server.put(pod("a", namespace="one"))
    await server.put(pod("b", namespace="two"))
    await server.put(pod("c", namespace="three"))
    store: Store[Key, Pod] = kube_store()
    connection = server.connection()
    reflectors = [Reflector(POD, store, connection, namespace=name) for name in ("one", "two")]
    tasks = [asyncio.create_task(each.run()) for each in reflectors]
    await store.wait_synced()
    assert set(store.keys()) == {Key("one", "a"), Key("two", "b")}
    await server.remove("a", "one")
    server.compact()
    await server.cut()
    await asyncio.sleep(5)
    assert set(store.keys()) == {Key("two", "b")}
    for task in tasks:
        task.cancel()


async def test_selectors_are_sent_with_lists_and_watches() -> None:
    server = FakeApiServer()
    server.watch_list = False
    async with following(server, labels="app=slurmd", fields="spec.nodeName=n1") as follower:
        await follower.store.wait_synced()
        await asyncio.sleep(1)
    for request in server.requests:
        assert request.url.params["labelSelector"] == "app=slurmd"
        assert request.url.params["fieldSelector"] == "spec.nodeName=n1"


async def test_our_own_write_is_not_rolled_back_by_a_slow_watch() -> None:
    server = FakeApiServer()
    await server.put(pod("a"))
    async with following(server) as follower:
        await follower.store.wait_synced()
        server.frozen = True
        await server.put(pod("a", labels={"step": "1"}))
        newest = await server.put(pod("a", labels={"step": "2"}))
        follower.store.observe(msgspec.convert(newest, Pod))
        server.frozen = False
        await server.bookmark()
        await asyncio.sleep(0.1)
        assert follower.changes == [("added", "a"), ("changed", "a")]


async def test_a_restored_backup_is_taken_over_in_one_step() -> None:
    server = FakeApiServer()
    await server.put(pod("kept"))
    await server.put(pod("lost"))
    async with following(server) as follower:
        await follower.store.wait_synced()
        empty: list[int] = []
        follower.store.subscribe(lambda *_: empty.append(len(follower.store)) if not len(follower.store) else None)
        server.version = 20
        server.objects.clear()
        server.history.clear()
        await server.put(pod("kept", uid="uid-1"))
        await server.bookmark()
        await asyncio.sleep(5)
        assert follower.names == {"kept"}
        assert follower.store[Key("ns", "kept")].metadata.resourceVersion == "21"
        assert not empty, "nobody must ever see an empty cluster"
        await server.put(pod("fresh"))
        await asyncio.sleep(5)
        assert follower.names == {"kept", "fresh"}


async def test_restarts_are_counted_by_cause() -> None:
    server = FakeApiServer()
    before = restarts("expired")
    async with following(server) as follower:
        await follower.store.wait_synced()
        server.frozen = True
        await server.put(pod("a"))
        server.compact()
        server.frozen = False
        await server.bookmark()
        await asyncio.sleep(5)
        assert follower.names == {"a"}
    assert restarts("expired") == before + 1
