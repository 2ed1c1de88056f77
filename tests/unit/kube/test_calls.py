"""Single calls: which are repeated, how long and how many at a time, and for whom they are refused."""

import asyncio

import pytest
from prometheus_client import REGISTRY

from kubeslurm.api.kinds import POD
from kubeslurm.engine.key import Key
from kubeslurm.kube.errors import Fenced, NotFound, Throttled, Unavailable
from kubeslurm.kube.fence import Fence
from tests.support.fake_apiserver import pod
from tests.unit.kube.clients import World

pytestmark = pytest.mark.looptime


async def test_reads_are_tried_again_when_the_server_is_busy(world: World) -> None:
    world.server.fail(429, Retry_After="2")
    world.server.fail(503)
    world.server.fail(0)
    assert await world.kube.get(POD, Key("ns", "nobody")) is None
    assert world.server.count("GET", "pods/nobody") == 4


async def test_reads_give_up_after_some_attempts(world: World) -> None:
    world.server.fail(503, times=20)
    with pytest.raises(Unavailable):
        await world.kube.list(POD)
    world.server.failures.clear()


async def test_writes_are_sent_once_and_carry_the_servers_wish_to_the_queue(world: World) -> None:
    world.server.fail(429, Retry_After="7")
    with pytest.raises(Throttled) as caught:
        await world.kube.create(pod("a"))
    assert caught.value.after == 7
    assert world.server.count("POST") == 1


async def test_every_call_has_a_deadline(world: World) -> None:
    world.server.delay = 3600
    loop = asyncio.get_running_loop()
    started = loop.time()
    with pytest.raises(Unavailable, match="within 10 s"):
        await world.kube.create(pod("a"))
    assert loop.time() - started == pytest.approx(10)


async def test_only_so_many_writes_run_at_the_same_time() -> None:
    world = World(writes=3)
    world.server.delay = 1
    loop = asyncio.get_running_loop()
    started = loop.time()
    await asyncio.gather(*(world.kube.create(pod(f"p{number}")) for number in range(9)))
    assert loop.time() - started == pytest.approx(3)


async def test_no_write_starts_after_the_renew_deadline() -> None:
    loop = asyncio.get_running_loop()
    fence = Fence(clock=loop.time)
    world = World(fence=fence)
    with pytest.raises(Fenced):
        await world.kube.create(pod("before"))
    fence.extend(loop.time() + 10, loop.time() + 15)
    await world.kube.create(pod("during"))
    await asyncio.sleep(10)
    with pytest.raises(Fenced):
        await world.kube.create(pod("after"))
    assert world.server.count("POST") == 1


async def test_a_write_that_waited_for_its_turn_is_refused_when_leadership_is_over() -> None:
    loop = asyncio.get_running_loop()
    fence = Fence(clock=loop.time)
    fence.extend(loop.time() + 10, loop.time() + 15)
    world = World(writes=1, fence=fence)
    world.server.delay = 9
    results = await asyncio.gather(
        *(world.kube.create(pod(f"p{number}")) for number in range(3)), return_exceptions=True
    )
    assert [isinstance(result, Exception) for result in results] == [False, True, True]
    assert isinstance(results[1], Unavailable), "it started in time, and was cut off before another leader may begin"
    assert isinstance(results[2], Fenced)
    assert loop.time() <= 15 + 1e-6


async def test_requests_are_counted_by_verb_kind_and_code(world: World) -> None:
    labels = {"verb": "patch", "kind": "Pod", "code": "404"}
    before = REGISTRY.get_sample_value("kubeslurm_api_requests_total", labels) or 0
    with pytest.raises(NotFound):
        await world.kube.patch(POD, Key("ns", "nobody"), {})
    assert REGISTRY.get_sample_value("kubeslurm_api_requests_total", labels) == before + 1
