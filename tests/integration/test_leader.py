"""Leader election on a real API server, with replicas as processes."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kubeslurm.api.kinds import CONFIGMAP
from kubeslurm.api.kinds import LEASE as LEASE_KIND
from kubeslurm.api.views import ConfigMap
from kubeslurm.engine.key import Key
from kubeslurm.engine.store import Store
from kubeslurm.kube import leader as module
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.errors import Fenced
from kubeslurm.kube.fence import Fence, boot_time
from kubeslurm.kube.leader import Leader, LeadershipLost
from kubeslurm.kube.transport.connection import Connection, connect
from kubeslurm.local.cluster.cluster import Cluster
from tests.support.follow import following
from tests.support.replica import LEASE, TIMING
from tests.support.waiting import WITHIN, eventually

ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def replicas(
    kubeconfig: Path, namespace: str, *names: str
) -> AsyncIterator[dict[str, asyncio.subprocess.Process]]:
    started = {
        name: await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.support.replica", str(kubeconfig), namespace, name, cwd=ROOT
        )
        for name in names
    }
    try:
        yield started
    finally:
        for process in started.values():
            if process.returncode is None:
                process.kill()
                await process.wait()


class Inputs:
    """ConfigMaps that the replicas copy, and a check that all copies are right."""

    def __init__(self, kube: Kube, store: Store[Key, ConfigMap], namespace: str) -> None:
        self.kube = kube
        self.store = store
        self.namespace = namespace
        self.desired: dict[str, str] = {}

    async def write(self, name: str, value: str) -> None:
        metadata = {"namespace": self.namespace, "name": name, "labels": {"role": "input"}}
        tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}
        await self.kube.apply(tree)
        self.desired[name] = value

    def copied(self) -> bool:
        outputs = {name: self.store.get(Key(self.namespace, f"out-{name}")) for name in self.desired}
        return all(each is not None and each.data["value"] == self.desired[name] for name, each in outputs.items())

    async def holder(self) -> str:
        lease = await self.kube.get(LEASE_KIND, Key(self.namespace, LEASE))
        return lease.spec.holderIdentity if lease is not None else ""

    async def holder_is(self, accept: Callable[[str], bool]) -> str:
        async with asyncio.timeout(WITHIN):
            while not accept(holder := await self.holder()):  # noqa: ASYNC110 (the Lease lives on the server)
                await asyncio.sleep(0.05)
        return holder


@pytest.fixture
async def inputs(cluster: Cluster, namespace: str) -> AsyncIterator[Inputs]:
    async with following(CONFIGMAP, cluster.kubeconfig, namespace) as follower:
        yield Inputs(follower.kube, follower.store, namespace)


async def test_a_leader_that_is_killed_is_replaced_and_no_change_is_lost(
    cluster: Cluster, namespace: str, inputs: Inputs
) -> None:
    async with replicas(cluster.kubeconfig, namespace, "one", "two") as running:
        for number in range(10):
            await inputs.write(f"in-{number}", "first")
        await eventually("the first leader to act", inputs.copied)
        first = await inputs.holder_is(lambda holder: holder in running)
        for number in range(5):
            await inputs.write(f"in-{number}", "second")
        running[first].send_signal(signal.SIGKILL)
        for number in range(5, 10):
            await inputs.write(f"in-{number}", "second")
        await eventually("the second leader to catch up", inputs.copied)
        second = await inputs.holder_is(lambda holder: holder in running and holder != first)
        assert inputs.store[Key(namespace, "out-in-9")].data["by"] == second


async def test_a_leader_that_is_stopped_releases_its_lease_at_once(
    cluster: Cluster, namespace: str, inputs: Inputs
) -> None:
    async with replicas(cluster.kubeconfig, namespace, "one", "two") as running:
        await inputs.write("in", "first")
        await eventually("the first leader to act", inputs.copied)
        first = await inputs.holder_is(lambda holder: holder in running)
        running[first].send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(running[first].wait(), WITHIN) == 0
        await inputs.holder_is(lambda holder: holder in running and holder != first)
        await inputs.write("in", "second")
        await eventually("the second leader to act", inputs.copied)


class Candidate:
    """A replica in this process, with a clock that can be set forward."""

    def __init__(self, kubeconfig: Path, namespace: str, identity: str) -> None:
        self.jump = 0.0
        self.fence = Fence(clock=lambda: boot_time() + self.jump)
        self.connection = Connection(connect(kubeconfig), fence=self.fence)
        self.leader = Leader(
            self.connection, self.fence, namespace=namespace, name=LEASE, identity=identity, timing=TIMING
        )
        self.kube = Kube(self.connection, Caches(self.connection), manager="kubeslurm-candidate")
        self.task = asyncio.create_task(self.leader.run())

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.connection.close()


@asynccontextmanager
async def candidates(kubeconfig: Path, namespace: str) -> AsyncIterator[tuple[Candidate, Candidate]]:
    first = Candidate(kubeconfig, namespace, "first")
    await asyncio.wait_for(first.leader.acquired(), WITHIN)
    second = Candidate(kubeconfig, namespace, "second")
    try:
        yield first, second
    finally:
        await first.stop()
        await second.stop()


def output(namespace: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": "out"}}


async def renewals(kube: Kube, namespace: str, year: int) -> None:
    """Waits until the first candidate has renewed its Lease in that year for longer than a Lease is valid."""
    times: set[datetime] = set()
    async with asyncio.timeout(WITHIN):
        while len(times) * TIMING.retry < TIMING.lease + 1:
            await asyncio.sleep(TIMING.retry / 4)
            lease = await kube.get(LEASE_KIND, Key(namespace, LEASE))
            assert lease is not None
            assert lease.spec.holderIdentity == "first"
            if (renewed := lease.spec.renewTime) and renewed.year == year:
                times.add(renewed)


@pytest.mark.parametrize("year", [1990, 2090])
async def test_a_jump_of_the_wall_clock_changes_no_leader(
    cluster: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch, year: int
) -> None:
    async with candidates(cluster.kubeconfig, namespace) as (first, second):
        monkeypatch.setattr(module, "micro_time", lambda: datetime.now(UTC).strftime(f"{year}-%m-%dT%H:%M:%S.%fZ"))
        await renewals(first.kube, namespace, year)  # a replica that trusted these times would have become leader
        assert first.fence.open
        assert not second.fence.open
        await first.kube.apply(output(namespace))


async def test_after_a_suspend_longer_than_its_lease_a_replica_writes_nothing_and_ends(
    cluster: Cluster, namespace: str
) -> None:
    async with candidates(cluster.kubeconfig, namespace) as (first, second):
        await first.kube.apply(output(namespace))
        first.jump = 3600
        with pytest.raises(Fenced):
            await first.kube.apply(output(namespace) | {"data": {"late": "write"}})
        with pytest.raises(LeadershipLost):
            await asyncio.wait_for(first.task, WITHIN)
        await asyncio.wait_for(second.leader.acquired(), WITHIN)
        await second.kube.apply(output(namespace))
