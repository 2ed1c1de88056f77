"""Owner references of workers, and what garbage collection makes of them when a NodeSet is deleted."""

import copy

import pytest

from kubeslurm.api import names
from kubeslurm.api.kinds import CONFIGMAP, CONTROLLER_REVISION, NODESET, POD
from kubeslurm.engine.key import Key
from tests.support.world import SET, World

SECOND = Key("slurm", names.second_owner("main"))


def owners(world: World) -> dict[str, list[str]]:
    """The kinds of the owners of each pod."""
    return {
        pod["metadata"]["name"]: [each["kind"] for each in pod["metadata"].get("ownerReferences", ())]
        for pod in world.kube.pods()
    }


def lose_owner(world: World, uid: str, *, of: str) -> None:
    """Garbage collection takes the reference to an owner away from children of a kind."""
    for kind in (POD, CONTROLLER_REVISION):
        for plural, key in list(world.kube.trees):
            if plural != kind.plural or plural != of:
                continue
            tree = copy.deepcopy(world.kube.trees[plural, key])
            metadata = tree["metadata"]
            metadata["ownerReferences"] = [each for each in metadata["ownerReferences"] if each["uid"] != uid]
            world.kube.put(kind, tree)


def uid_of(world: World) -> str:
    return str(world.kube.trees[NODESET.plural, SET]["metadata"]["uid"])


def remove_revisions(world: World) -> None:
    for plural, key in list(world.kube.trees):
        if plural == CONTROLLER_REVISION.plural:
            world.kube.remove(CONTROLLER_REVISION, key)


async def test_a_worker_has_an_owner_that_is_not_deleted_with_its_nodeset(world: World) -> None:
    assert owners(world) == {"gpu-0": ["NodeSet", "ConfigMap"], "gpu-1": ["NodeSet", "ConfigMap"]}
    await world.turn(3)
    assert not [each for each in world.kube.writes if each == "patch pods gpu-0"][1:], "it was made with both"


async def test_no_worker_is_made_before_its_second_owner(world: World) -> None:
    world.kube.remove(CONFIGMAP, SECOND)
    world.nodeset(replicas=3)
    await world.turn(2)
    assert world.pod_names() == ["gpu-0", "gpu-1"]
    assert "1 workers to create" in world.message("Progressing")
    world.kube.put(CONFIGMAP, {"metadata": {"name": SECOND.name, "namespace": SECOND.namespace}})
    await world.turn(2)
    assert world.pod_names() == ["gpu-0", "gpu-1", "gpu-2"]


async def test_a_worker_of_another_operator_gets_the_second_owner_once(world: World) -> None:
    lose_owner(world, world.kube.trees[CONFIGMAP.plural, SECOND]["metadata"]["uid"], of=POD.plural)
    before = len(world.kube.writes)
    await world.turn(3)
    assert owners(world) == {"gpu-0": ["NodeSet", "ConfigMap"], "gpu-1": ["NodeSet", "ConfigMap"]}
    assert sorted(world.kube.writes[before:]) == ["patch pods gpu-0", "patch pods gpu-1"]


async def test_orphaned_pods_are_left_alone_also_when_garbage_collection_was_faster(world: World) -> None:
    world.slurm.submit("gpu-0")
    world.delete_nodeset()
    for plural in (POD.plural, CONTROLLER_REVISION.plural):
        lose_owner(world, uid_of(world), of=plural)
    await world.turn(4)
    assert (NODESET.plural, SET) not in world.kube.trees
    assert world.pod_names() == ["gpu-0", "gpu-1"]
    assert not any(node.drain for node in world.slurm.records.values())


async def test_a_new_nodeset_takes_orphaned_pods_and_drains_them_when_it_is_deleted(world: World) -> None:
    world.delete_nodeset()
    for plural in (POD.plural, CONTROLLER_REVISION.plural):
        lose_owner(world, uid_of(world), of=plural)
    await world.turn(2)
    world.nodeset(replicas=2)
    await world.turn(4)
    assert world.pod_names() == ["gpu-0", "gpu-1"]
    assert owners(world) == {"gpu-0": ["ConfigMap", "NodeSet"], "gpu-1": ["ConfigMap", "NodeSet"]}
    world.delete_nodeset()
    await world.turn(4)
    assert world.pod_names() == []


@pytest.mark.parametrize("busy", [True, False])
async def test_a_foreground_deletion_drains_workers_that_have_lost_their_owner(world: World, busy: bool) -> None:
    jobs = [world.slurm.submit("gpu-0")] if busy else []
    world.delete_nodeset()
    lose_owner(world, uid_of(world), of=POD.plural)
    remove_revisions(world)
    await world.turn(4)
    assert world.pod_names() == (["gpu-0"] if busy else [])
    for job in jobs:
        world.slurm.finish(job)
    await world.turn(3)
    assert world.pod_names() == []
    assert world.violations == []
