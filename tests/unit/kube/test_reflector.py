"""What a reflector writes into its store while nothing fails, whatever the objects look like."""

import asyncio

import msgspec
import pytest
from prometheus_client import REGISTRY

from kubeslurm.api.kinds import POD
from kubeslurm.api.views import Pod
from kubeslurm.engine.key import Key
from kubeslurm.engine.store import Store
from kubeslurm.kube import reflector as module
from kubeslurm.kube.caches import CacheFilter
from kubeslurm.kube.objects import kube_store
from kubeslurm.kube.reflector import Reflector
from kubeslurm.kube.unreadable import unreadable_store
from tests.support.fake_apiserver import FakeApiServer, encode, pod
from tests.unit.kube.following import following

pytestmark = pytest.mark.looptime

A = Key("ns", "a")


def _is_slurmd(found: Pod) -> bool:
    return found.metadata.labels.get("app") == "slurmd"


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


async def test_bookmarks_move_the_version_from_which_the_watch_goes_on() -> None:
    server = FakeApiServer()
    async with following(server) as follower:
        await follower.store.wait_synced()
        await server.bookmark(4711)
        await asyncio.sleep(0.1)
        await server.cut()
        await asyncio.sleep(2)
    assert server.count("GET", "resourceVersion=4711") == 1


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


async def test_an_object_that_becomes_undecodable_stays_in_its_last_known_state() -> None:
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


async def test_the_fields_of_an_event_may_come_in_any_order() -> None:
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
    selectors = CacheFilter(labels={"app": "slurmd"}, fields="spec.nodeName=n1").selectors
    async with following(server, selectors=selectors) as follower:
        await follower.store.wait_synced()
        await asyncio.sleep(1)
    for request in server.requests:
        assert request.url.params["labelSelector"] == "app=slurmd"
        assert request.url.params["fieldSelector"] == "spec.nodeName=n1"


@pytest.mark.parametrize("watch_list", [True, False])
async def test_objects_outside_the_cache_filter_are_not_kept(watch_list: bool) -> None:
    server = FakeApiServer()
    server.watch_list = watch_list
    await server.put(pod("ours", labels={"app": "slurmd"}))
    await server.put(pod("other"))
    async with following(server, keep=_is_slurmd) as follower:
        await follower.store.wait_synced()
        await server.put(pod("other", labels={"x": "y"}))
        await server.remove("other")
        await server.put(pod("another"))
        await server.put(pod("late", labels={"app": "slurmd"}))
        await asyncio.sleep(1)
        assert follower.changes == [("added", "ours"), ("added", "late")]
        # The watch goes on after the last event, also after one that was not kept.
        await server.put(pod("third"))
        await asyncio.sleep(1)
        await server.cut()
        await asyncio.sleep(5)
        assert server.requests[-1].url.params["resourceVersion"] == str(server.version)


async def test_an_object_in_the_store_stays_there_when_its_labels_change() -> None:
    server = FakeApiServer()
    await server.put(pod("a", labels={"app": "slurmd"}))
    async with following(server, keep=_is_slurmd) as follower:
        await follower.store.wait_synced()
        await server.put(pod("a"))
        server.compact()
        await server.cut()
        await asyncio.sleep(5)
        assert follower.store[A].metadata.labels == {}
        await server.remove("a")
        await asyncio.sleep(5)
        assert follower.changes == [("added", "a"), ("changed", "a"), ("deleted", "a")]


async def test_our_own_write_is_not_rolled_back_by_a_slow_watch() -> None:
    server = FakeApiServer()
    await server.put(pod("a"))
    async with following(server) as follower:
        await follower.store.wait_synced()
        server.frozen = True
        await server.put(pod("a", labels={"step": "1"}))
        newest = await server.put(pod("a", labels={"step": "2"}))
        follower.store.observe_write(msgspec.convert(newest, Pod))
        server.frozen = False
        await server.bookmark()
        await asyncio.sleep(0.1)
        assert follower.changes == [("added", "a"), ("changed", "a")]


async def test_an_undecodable_object_is_known_by_name_until_it_is_corrected_or_gone() -> None:
    server = FakeApiServer()
    await server.put(pod("a") | {"spec": {"nodeName": 5}})
    await server.put(pod("b") | {"spec": {"nodeName": 5}})
    unreadables = unreadable_store()
    async with following(server, unreadables=unreadables) as follower:
        await follower.store.wait_synced()
        assert {str(each) for each in unreadables} == {"Pod ns/a", "Pod ns/b"}
        await server.put(pod("a"))
        await server.remove("b")
        await asyncio.sleep(0.1)
        assert len(unreadables) == 0
        assert follower.names == {"a"}


async def test_an_undecodable_object_that_goes_while_nobody_watches_is_forgotten() -> None:
    server = FakeApiServer()
    await server.put(pod("a") | {"spec": {"nodeName": 5}})
    unreadables = unreadable_store()
    async with following(server, unreadables=unreadables) as follower:
        await follower.store.wait_synced()
        server.frozen = True
        await server.remove("a")
        server.compact()
        server.frozen = False
        await server.cut()
        await asyncio.sleep(5)
        assert len(unreadables) == 0


async def test_the_end_of_an_object_is_seen_although_its_last_state_cannot_be_decoded() -> None:
    server = FakeApiServer()
    await server.put(pod("a"))
    async with following(server) as follower:
        await follower.store.wait_synced()
        await server.put(pod("a") | {"spec": {"nodeName": 5}})
        await server.remove("a")
        await asyncio.sleep(0.1)
        assert follower.names == set()
