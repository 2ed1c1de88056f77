"""Workers that follow the nodes, and the names that their slurmd registers under."""

import pytest

from kubeslurm.api import names
from tests.support.clock import HandClock
from tests.support.disruption import evict
from tests.support.world import World

NETWORKS = {"its own network": {}, "the host network": {"hostNetwork": True}}


def daemons(world: World, network: dict[str, bool], weight: int = 1) -> None:
    world.nodeset(replicas=1, scalingMode="DaemonSet", extraConf=f"Weight={weight}", template={"spec": network})


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
async def test_slurm_knows_a_worker_by_the_short_or_given_name_of_its_machine(network: dict[str, bool]) -> None:
    world = World(hosts=2, domain=".example.org")
    world.annotate_node("host-1.example.org", {names.HOSTNAME_OVERRIDE: "given"})
    daemons(world, network)
    await world.turn(3)
    assert sorted(world.slurm.records) == ["given", "host-0"]
    assert world.status()["slurmIdle"] == 2


async def test_a_busy_worker_that_registered_under_another_name_is_never_taken_for_absent() -> None:
    """Its image does not use the name that it is given."""
    clock = HandClock()
    world = World(hosts=2, domain=".example.org", clock=clock)
    world.machines.takes_name = False
    daemons(world, NETWORKS["the host network"])
    await world.turn(3)
    before = world.pod_names()
    world.slurm.submit("host-0.example.org")
    world.slurm.submit("host-1.example.org")
    daemons(world, NETWORKS["the host network"], weight=2)
    for _ in range(20):
        clock.now += 20.0
        await world.turn()
    assert world.violations == []
    assert world.pod_names() == before
    assert ".example.org in Slurm instead of host-" in world.message("Progressing")
    assert names.FORCE_DELETE in world.message("Progressing")


async def test_no_busy_daemon_is_evicted_though_replicas_says_one() -> None:
    world = World(hosts=3)
    daemons(world, {})
    await world.turn(3)
    world.slurm.submit("host-0", "host-1", "host-2")
    await world.turn(2)
    assert [evict(world.kube, name) for name in world.pod_names()] == [False, False, False]
