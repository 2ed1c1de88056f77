"""Claims of workers: made with them, gone with them, and never in the way of the next worker of that name."""

import copy
from typing import Any

import pytest

from kubeslurm.api.kinds import PERSISTENT_VOLUME_CLAIM, POD
from kubeslurm.engine.key import Key
from tests.support.clock import stamp
from tests.support.world import World

SPEC: dict[str, Any] = {
    "volumeClaimTemplates": [{"metadata": {"name": "scratch"}, "spec": {"accessModes": ["ReadWriteOnce"]}}],
    "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"},
}
CLAIM = Key("slurm", "scratch-gpu-1")


@pytest.fixture
async def world() -> World:
    made = World()
    made.nodeset(replicas=2, **SPEC)
    await made.turn(4)
    return made


def claim(world: World) -> dict[str, Any] | None:
    return world.kube.trees.get((PERSISTENT_VOLUME_CLAIM.plural, CLAIM))


async def test_a_claim_that_goes_with_the_last_worker_is_not_given_to_the_next(world: World) -> None:
    world.nodeset(replicas=1, **SPEC)
    await world.turn(2)
    assert world.pod_names() == ["gpu-0"]
    assert [each["kind"] for each in (claim(world) or {})["metadata"]["ownerReferences"]] == ["Pod"]
    world.nodeset(replicas=2, **SPEC)
    await world.turn(2)
    assert world.pod_names() == ["gpu-0"]
    assert "waiting until claim scratch-gpu-1 is deleted" in world.message("Progressing")
    world.kube.remove(PERSISTENT_VOLUME_CLAIM, CLAIM)  # garbage collection follows
    await world.turn(2)
    assert world.pod_names() == ["gpu-0", "gpu-1"]
    assert "ownerReferences" not in (claim(world) or {})["metadata"]


async def test_a_worker_waits_while_its_claim_is_being_deleted(world: World) -> None:
    tree = copy.deepcopy(claim(world)) or {}
    tree["metadata"]["deletionTimestamp"] = stamp()
    world.kube.put(PERSISTENT_VOLUME_CLAIM, tree)
    world.kill_pod("gpu-1")
    await world.turn(2)
    assert world.pod_names() == ["gpu-0"]


async def test_a_claim_that_is_lost_before_its_pod_is_placed_is_made_again(world: World) -> None:
    pod = copy.deepcopy(world.kube.trees[POD.plural, Key("slurm", "gpu-1")])
    pod["spec"].pop("nodeName")
    pod["status"] = {"phase": "Pending"}
    world.kube.put(POD, pod)
    world.kube.remove(PERSISTENT_VOLUME_CLAIM, CLAIM)
    await world.turn()
    assert claim(world) is not None
