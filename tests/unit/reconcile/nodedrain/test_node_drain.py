"""Drains made in Slurm become visible on Kubernetes nodes, when that is wanted."""

from typing import Any

import pytest

from kubeslurm.api import names
from kubeslurm.api.kinds import NODE
from kubeslurm.api.meta import Tree
from kubeslurm.engine.controller import Controller, Retry
from kubeslurm.engine.key import Key
from kubeslurm.kube.errors import Invalid
from kubeslurm.reconcile.nodedrain.reconciler import NodeDrainReconciler
from kubeslurm.reconcile.nodedrain.registration import REGISTRATION
from tests.support.world import World

HOST = Key("", "host-0")


@pytest.fixture
async def world() -> World:
    world = World(hosts=1, slurm_drain_on_node="Cordon")
    world.nodeset(replicas=1)
    await world.turn(4)
    return world


@pytest.fixture
def controller(world: World) -> NodeDrainReconciler:
    return NodeDrainReconciler(world.context)


def node(world: World) -> Tree:
    return world.kube.trees[NODE.plural, HOST]


def is_annotated(world: World) -> bool:
    return names.SLURM_DRAIN in node(world)["metadata"].get("annotations", {})


async def mirrored(world: World, controller: NodeDrainReconciler) -> None:
    """Slurm is polled, and both controllers make their passes."""
    for _ in range(2):
        await world.turn()
        await controller.reconcile(HOST)


async def test_an_admins_drain_cordons_and_a_resume_uncordons(world: World, controller: NodeDrainReconciler) -> None:
    world.slurm.drain("gpu-0", "bad fan")
    await mirrored(world, controller)
    assert node(world)["spec"]["unschedulable"] is True
    assert node(world)["status"]["conditions"][0]["message"] == "gpu-0: bad fan"
    assert world.slurm.records["gpu-0"].reason == "bad fan"
    world.slurm.resume("gpu-0")
    await mirrored(world, controller)
    assert not node(world)["spec"].get("unschedulable")
    assert node(world)["status"]["conditions"] == []
    assert not is_annotated(world)
    assert world.slurm.is_idle("gpu-0")


async def test_a_users_cordon_is_no_drain_of_an_admins(world: World, controller: NodeDrainReconciler) -> None:
    world.cordon("host-0")
    await mirrored(world, controller)
    assert world.slurm.records["gpu-0"].drain
    assert not is_annotated(world)
    world.cordon("host-0", False)
    await mirrored(world, controller)
    assert world.slurm.is_idle("gpu-0")


async def test_a_users_cordon_outlives_an_admins_drain(world: World, controller: NodeDrainReconciler) -> None:
    world.cordon("host-0")
    world.slurm.drain("gpu-0", "bad fan")
    await mirrored(world, controller)
    world.slurm.resume("gpu-0")
    await mirrored(world, controller)
    assert node(world)["spec"]["unschedulable"] is True
    assert world.slurm.records["gpu-0"].ours


async def test_a_cordon_after_a_users_uncordon_is_the_users(world: World, controller: NodeDrainReconciler) -> None:
    world.slurm.drain("gpu-0", "bad fan")
    await mirrored(world, controller)
    world.cordon("host-0", False)
    await mirrored(world, controller)
    world.cordon("host-0")
    await mirrored(world, controller)
    world.slurm.resume("gpu-0")
    await mirrored(world, controller)
    assert node(world)["spec"]["unschedulable"] is True
    assert world.slurm.records["gpu-0"].ours


async def test_nothing_changes_while_slurm_cannot_be_asked(world: World, controller: NodeDrainReconciler) -> None:
    world.slurm.drain("gpu-0", "bad fan")
    await mirrored(world, controller)
    world.disconnect()
    await mirrored(world, controller)
    assert is_annotated(world)


async def test_a_node_without_workers_keeps_no_annotation(world: World, controller: NodeDrainReconciler) -> None:
    world.slurm.drain("gpu-0", "bad fan")
    await mirrored(world, controller)
    world.nodeset(replicas=0)
    await mirrored(world, controller)
    await mirrored(world, controller)
    assert world.pod_names() == []
    assert not is_annotated(world)
    assert not node(world)["spec"].get("unschedulable")


async def test_a_node_that_changed_meanwhile_is_looked_at_again(world: World, controller: NodeDrainReconciler) -> None:
    async def refuse(*_args: Any, **_options: Any) -> None:
        raise Invalid(422, "Invalid", "the test failed")

    world.slurm.drain("gpu-0", "bad fan")
    await world.turn()
    world.kube.patch = refuse  # type: ignore[method-assign]
    with pytest.raises(Retry, match="host-0 changed meanwhile"):
        await controller.reconcile(HOST)


async def test_a_changed_slurm_node_concerns_its_machine(world: World, controller: NodeDrainReconciler) -> None:
    passes = Controller("nodedrain", controller.reconcile)
    REGISTRATION.start_watches(world.context, passes)
    world.slurm.drain("gpu-0", "bad fan")
    await world.turn()
    assert passes._queue.take() == HOST
