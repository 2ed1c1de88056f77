"""A reflector whose watch breaks, expires, goes silent or is refused: nothing is lost, and requests stay few."""

import asyncio

import pytest
from prometheus_client import REGISTRY

from kubeslurm.engine.key import Key
from kubeslurm.kube import reflector as module
from tests.support.fake_apiserver import FakeApiServer, pod
from tests.unit.kube.following import following

pytestmark = pytest.mark.looptime


def restarts(cause: str) -> float:
    return REGISTRY.get_sample_value("kubeslurm_watch_restarts_total", {"kind": "Pod", "cause": cause}) or 0


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


async def test_a_connection_that_breaks_in_the_middle_of_a_line_loses_nothing() -> None:
    server = FakeApiServer()
    await server.put(pod("a"))
    async with following(server) as follower:
        await follower.store.wait_synced()
        await server.cut()
        await server.put(pod("b"))
        await server.remove("a")
        await asyncio.sleep(2)
        assert follower.names == {"b"}
    assert server.count("GET", "resourceVersion=101") == 1, "the watch goes on from the last version"
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


async def test_a_silent_connection_counts_as_broken() -> None:
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


async def test_errors_are_retried_with_growing_pauses() -> None:
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


async def test_endless_410_answers_cause_no_busy_loop() -> None:
    server = FakeApiServer()
    server.fail(410, times=1000)
    async with following(server):
        await asyncio.sleep(60)
    assert len(server.requests) < 12


async def test_a_server_that_is_down_is_tried_until_it_is_back() -> None:
    server = FakeApiServer()
    await server.put(pod("a"))
    async with following(server) as follower:
        await follower.store.wait_synced()
        server.fail(0, times=3)
        await server.cut()
        await server.remove("a")
        await asyncio.sleep(30)
        assert follower.names == set()


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
        assert not empty, "no listener ever sees an empty store"
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
