import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from kubeslurm.kube.errors import Fenced
from kubeslurm.kube.fence import Fence, boot_time
from kubeslurm.kube.leader import Leader, LeadershipLost
from tests.support.fake_apiserver import FakeApiServer
from tests.support.fake_storage import Address

pytestmark = pytest.mark.looptime

ADDRESS = Address("leases", "slinky", "slurm-operator")


class Replica:
    def __init__(self, server: FakeApiServer, identity: str) -> None:
        self.fence = Fence(clock=asyncio.get_running_loop().time)
        self.leader = Leader(server.connection(), self.fence, namespace="slinky", identity=identity)
        self.task = asyncio.create_task(self.leader.run())

    async def kill(self) -> None:
        """End without a release of the Lease, as by SIGKILL."""
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


@asynccontextmanager
async def replicas(server: FakeApiServer, *names: str) -> AsyncIterator[list[Replica]]:
    made = [Replica(server, name) for name in names]
    try:
        yield made
    finally:
        for replica in made:
            replica.task.cancel()
        await asyncio.gather(*(replica.task for replica in made), return_exceptions=True)


def spec(server: FakeApiServer) -> dict[str, Any]:
    found: dict[str, Any] = server.objects[ADDRESS]["spec"]
    return found


async def test_one_of_two_replicas_leads_and_the_other_knows_the_holder() -> None:
    server = FakeApiServer()
    async with replicas(server, "one", "two") as (one, two):
        await asyncio.sleep(60)
        assert {one.fence.open, two.fence.open} == {True, False}
        leader, waiter = (one, two) if one.fence.open else (two, one)
        assert waiter.leader.holder == leader.leader.identity
        assert spec(server)["holderIdentity"] == leader.leader.identity
        assert spec(server)["leaseDurationSeconds"] == 15


async def test_a_leader_that_dies_is_replaced_after_its_lease_and_not_before() -> None:
    server = FakeApiServer()
    async with replicas(server, "one") as (one,):
        await one.leader.acquired()
        async with replicas(server, "two") as (two,):
            await asyncio.sleep(20)
            await one.kill()
            died = asyncio.get_running_loop().time()
            await two.leader.acquired()
            waited = asyncio.get_running_loop().time() - died
            assert 12 <= waited <= 18
            assert spec(server)["leaseTransitions"] == 1


async def test_a_released_lease_is_acquired_at_once() -> None:
    server = FakeApiServer()
    async with replicas(server, "one", "two") as (one, two):
        await asyncio.sleep(20)
        leader, waiter = (one, two) if one.fence.open else (two, one)
        await leader.kill()
        await leader.leader.release()
        assert not leader.fence.open
        released = asyncio.get_running_loop().time()
        await waiter.leader.acquired()
        assert asyncio.get_running_loop().time() - released <= 2


async def test_a_leader_that_cannot_renew_stops_writing_before_anyone_else_may_start() -> None:
    server = FakeApiServer()
    async with replicas(server, "one") as (one,):
        await one.leader.acquired()
        await asyncio.sleep(7)
        server.fail(503, times=10_000)
        cut = asyncio.get_running_loop().time()
        with pytest.raises(LeadershipLost):
            await one.task
        assert asyncio.get_running_loop().time() - cut <= 10
        with pytest.raises(Fenced):
            one.fence.admit(10)


async def test_a_leader_survives_a_short_outage() -> None:
    server = FakeApiServer()
    async with replicas(server, "one") as (one,):
        await one.leader.acquired()
        server.fail(0, times=3)
        await asyncio.sleep(60)
        assert one.fence.open


async def test_a_leader_whose_lease_has_another_holder_ends_at_once() -> None:
    server = FakeApiServer()
    async with replicas(server, "one") as (one,):
        await one.leader.acquired()
        lease = server.objects[ADDRESS]
        await server.put(lease | {"spec": lease["spec"] | {"holderIdentity": "other"}}, plural="leases")
        with pytest.raises(LeadershipLost):
            await asyncio.wait_for(one.task, 5)
        assert not one.fence.open


@pytest.mark.parametrize("renewed", ["1999-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"])
async def test_wall_clocks_do_not_matter(renewed: str) -> None:
    """The Lease of a holder whose clock is decades off expires when it has not changed for its duration."""
    server = FakeApiServer()
    holder = {"holderIdentity": "go-operator_1", "leaseDurationSeconds": 15, "renewTime": renewed}
    metadata = {"namespace": "slinky", "name": "slurm-operator"}
    await server.put(
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": holder}, plural="leases"
    )
    async with replicas(server, "one") as (one,):
        await asyncio.sleep(14)
        assert not one.fence.open
        await asyncio.sleep(4)
        assert one.fence.open


async def test_after_a_suspend_no_write_may_start() -> None:
    """The clock goes on while the machine is suspended, so a write is refused before any timer has run."""
    now = 1000.0
    fence = Fence(clock=lambda: now)
    fence.extend(now + 10, now + 15)
    assert fence.admit(10) == 10
    now += 3600
    with pytest.raises(Fenced):
        fence.admit(10)
    assert not fence.open


async def test_a_late_write_gets_only_the_time_until_the_lease_ends() -> None:
    fence = Fence(clock=lambda: 9.0)
    fence.extend(10.0, 15.0)
    assert fence.admit(10) == 6.0


def test_the_default_clock_is_not_the_wall_clock() -> None:
    assert 0 < boot_time() < 10**9


async def test_a_renewal_is_one_request() -> None:
    server = FakeApiServer()
    async with replicas(server, "one") as (one,):
        await one.leader.acquired()
        reads, before = server.count("GET"), spec(server)["renewTime"]
        await asyncio.sleep(60)
        assert server.count("GET") == reads
        assert server.count("PUT") >= 25
        assert spec(server)["renewTime"] != before


async def test_a_lease_that_someone_else_edited_is_read_again_and_kept() -> None:
    server = FakeApiServer()
    async with replicas(server, "one") as (one,):
        await one.leader.acquired()
        await server.edit(ADDRESS, {"metadata": {"labels": {"touched": "yes"}}})
        await asyncio.sleep(60)
        assert one.fence.open
        assert server.objects[ADDRESS]["metadata"]["labels"] == {"touched": "yes"}


async def test_a_candidate_waits_as_long_as_the_server_asks() -> None:
    server = FakeApiServer()
    server.fail(429, times=3, Retry_After="12")
    async with replicas(server, "one") as (one,):
        await asyncio.sleep(30)
        assert len(server.requests) == 3
        await one.leader.acquired()
        assert asyncio.get_running_loop().time() >= 36


async def test_a_candidate_waits_no_longer_than_a_lease_is_valid() -> None:
    server = FakeApiServer()
    server.fail(429, times=1, Retry_After="3600")
    async with replicas(server, "one") as (one,):
        await asyncio.sleep(16)
        assert one.fence.open
