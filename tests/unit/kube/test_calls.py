"""Single requests: which are repeated, their deadlines, their number at a time, and the fence."""

import asyncio

import pytest
from prometheus_client import REGISTRY

from kubeslurm.api.kinds import POD
from kubeslurm.engine.key import Key
from kubeslurm.kube.errors import Fenced, NotFound, Throttled, Unavailable
from kubeslurm.kube.fence import Fence
from tests.support.fake_apiserver import pod
from tests.unit.kube.clients import Cluster

pytestmark = pytest.mark.looptime


async def test_reads_are_tried_again_when_the_server_is_busy(cluster: Cluster) -> None:
    cluster.server.fail(429, Retry_After="2")
    cluster.server.fail(503)
    cluster.server.fail(0)
    assert await cluster.kube.get(POD, Key("ns", "nobody")) is None
    assert cluster.server.count("GET", "pods/nobody") == 4


async def test_reads_give_up_after_some_attempts(cluster: Cluster) -> None:
    cluster.server.fail(503, times=20)
    with pytest.raises(Unavailable):
        await cluster.kube.list(POD)
    cluster.server.failures.clear()


async def test_a_write_is_sent_once_and_the_error_has_the_retry_after_of_the_server(cluster: Cluster) -> None:
    cluster.server.fail(429, Retry_After="7")
    with pytest.raises(Throttled) as caught:
        await cluster.kube.create(pod("a"))
    assert caught.value.after == 7
    assert cluster.server.count("POST") == 1


async def test_every_request_has_a_deadline(cluster: Cluster) -> None:
    cluster.server.delay = 3600
    loop = asyncio.get_running_loop()
    started = loop.time()
    with pytest.raises(Unavailable, match="within 10 s"):
        await cluster.kube.create(pod("a"))
    assert loop.time() - started == pytest.approx(10)


async def test_the_number_of_concurrent_writes_is_limited() -> None:
    cluster = Cluster(writes=3)
    cluster.server.delay = 1
    loop = asyncio.get_running_loop()
    started = loop.time()
    await asyncio.gather(*(cluster.kube.create(pod(f"p{number}")) for number in range(9)))
    assert loop.time() - started == pytest.approx(3)


async def test_no_write_starts_after_the_renew_deadline() -> None:
    loop = asyncio.get_running_loop()
    fence = Fence(clock=loop.time)
    cluster = Cluster(fence=fence)
    with pytest.raises(Fenced):
        await cluster.kube.create(pod("before"))
    fence.extend(loop.time() + 10, loop.time() + 15)
    await cluster.kube.create(pod("during"))
    await asyncio.sleep(10)
    with pytest.raises(Fenced):
        await cluster.kube.create(pod("after"))
    assert cluster.server.count("POST") == 1


async def test_a_write_that_waited_for_its_turn_is_refused_when_leadership_is_over() -> None:
    loop = asyncio.get_running_loop()
    fence = Fence(clock=loop.time)
    fence.extend(loop.time() + 10, loop.time() + 15)
    cluster = Cluster(writes=1, fence=fence)
    cluster.server.delay = 9
    results = await asyncio.gather(
        *(cluster.kube.create(pod(f"p{number}")) for number in range(3)), return_exceptions=True
    )
    assert [isinstance(result, Exception) for result in results] == [False, True, True]
    assert isinstance(results[1], Unavailable), "it started in time, and was cancelled before another leader may start"
    assert isinstance(results[2], Fenced)
    assert loop.time() <= 15 + 1e-6


async def test_requests_are_counted_by_verb_kind_and_code(cluster: Cluster) -> None:
    labels = {"verb": "patch", "kind": "Pod", "code": "404"}
    before = REGISTRY.get_sample_value("kubeslurm_api_requests_total", labels) or 0
    with pytest.raises(NotFound):
        await cluster.kube.patch(POD, Key("ns", "nobody"), {})
    assert REGISTRY.get_sample_value("kubeslurm_api_requests_total", labels) == before + 1
