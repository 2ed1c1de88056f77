"""What another operator leaves of a ScheduledUpdate: a reservation in Slurm, and a finalizer."""

import copy

import pytest

from kubeslurm.api import names
from kubeslurm.api.kinds import CONTROLLER, NODESET
from tests.support.world import CLUSTER, SET, World

RESERVATION = "SlurmOperatorMaint-gpu"


@pytest.fixture
async def world(world: World) -> World:
    tree = copy.deepcopy(world.kube.trees[NODESET.plural, SET])
    tree["metadata"]["finalizers"].append(names.RESERVATION_FINALIZER)
    world.kube.put(NODESET, tree)
    world.slurm.reservations = {RESERVATION, "maintenance"}
    return world


def is_held(world: World) -> bool:
    return names.RESERVATION_FINALIZER in world.kube.trees[NODESET.plural, SET]["metadata"]["finalizers"]


async def test_it_goes_when_no_update_is_scheduled(world: World) -> None:
    await world.turn(2)
    assert world.slurm.reservations == {"maintenance"}
    assert not is_held(world)


async def test_it_stays_while_the_nodeset_asks_for_scheduled_updates(world: World) -> None:
    world.nodeset(replicas=2, updateStrategy={"type": "ScheduledUpdate"})
    await world.turn(2)
    assert RESERVATION in world.slurm.reservations
    assert is_held(world)


@pytest.mark.parametrize("replicas", [2, 0])
async def test_a_deleted_nodeset_does_not_wait_for_an_operator_that_is_gone(world: World, replicas: int) -> None:
    world.nodeset(replicas=replicas, updateStrategy={"type": "ScheduledUpdate"})
    world.delete_nodeset()
    await world.turn(6)
    assert (NODESET.plural, SET) not in world.kube.trees
    assert world.slurm.reservations == {"maintenance"}


@pytest.mark.parametrize("cluster_goes", [True, False])
async def test_without_slurm_it_holds_the_nodeset_only_while_its_cluster_stays(
    world: World, cluster_goes: bool
) -> None:
    world.nodeset(replicas=0, updateStrategy={"type": "ScheduledUpdate"})
    await world.turn(4)
    tree = copy.deepcopy(world.kube.trees[NODESET.plural, SET])
    tree["metadata"]["finalizers"] = [names.FINALIZER, names.RESERVATION_FINALIZER]
    world.kube.put(NODESET, tree)
    world.disconnect()
    if cluster_goes:
        world.kube.remove(CONTROLLER, CLUSTER)
    world.delete_nodeset()
    await world.turn(4)
    assert ((NODESET.plural, SET) in world.kube.trees) is not cluster_goes
