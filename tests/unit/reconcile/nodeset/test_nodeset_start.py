"""What workers read only at their start: a change reaches them by a rolling update, and by nothing else."""

import base64
import copy

import pytest

from kubeslurm.api import names
from kubeslurm.api.kinds import CONTROLLER, POD, SECRET
from kubeslurm.engine.controller import Controller
from kubeslurm.engine.key import Key
from kubeslurm.reconcile.nodeset.registration import REGISTRATION
from tests.support.world import CLUSTER, SET, World

AUTH = Key("slurm", "auth")


def write_key(world: World, text: str) -> None:
    data = {"slurm.key": base64.b64encode(text.encode()).decode()}
    world.kube.put(SECRET, {"metadata": {"name": AUTH.name, "namespace": AUTH.namespace}, "data": data})


def uids(world: World) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in world.kube.pods()}


@pytest.fixture
async def world() -> World:
    world = World()
    write_key(world, "first")
    world.nodeset(replicas=2)
    await world.turn(6)
    assert world.status()["slurmIdle"] == 2
    return world


async def test_a_new_slurm_key_reaches_every_worker_and_costs_no_job(world: World) -> None:
    before, job = uids(world), world.slurm.submit("gpu-0")
    write_key(world, "second")
    await world.turn(12)
    assert uids(world)["gpu-0"] == before["gpu-0"]
    assert list(world.slurm.jobs) == [job]
    world.slurm.finish(job)
    await world.turn(12)
    assert uids(world).keys() == before.keys()
    assert not set(uids(world).values()) & set(before.values())
    assert (world.violations, world.slurm.requeued) == ([], [])


async def test_a_slurm_key_that_is_missing_or_the_same_restarts_nobody(world: World) -> None:
    before = uids(world)
    world.kube.remove(SECRET, AUTH)
    await world.turn(6)
    write_key(world, "first")
    await world.turn(6)
    assert uids(world) == before


async def test_a_new_address_of_slurmctld_reaches_every_worker(world: World) -> None:
    before = uids(world)
    tree = copy.deepcopy(world.kube.trees[CONTROLLER.plural, CLUSTER])
    tree["spec"]["service"] = {"port": 7817}
    world.kube.put(CONTROLLER, tree)
    await world.turn(16)
    assert not set(uids(world).values()) & set(before.values())
    arguments = world.kube.pods()[0]["spec"]["containers"][0]["args"]
    assert "main-controller.slurm:7817" in arguments


async def test_a_worker_from_before_digests_were_kept_is_not_restarted_for_want_of_one(world: World) -> None:
    for pod in world.kube.pods():
        tree = copy.deepcopy(pod)
        for name in (names.SLURM_KEY_HASH, names.RESTART_HASH):
            del tree["metadata"]["annotations"][name]
        world.kube.put(POD, tree)
    before = uids(world)
    write_key(world, "second")
    await world.turn(8)
    assert uids(world) == before


async def test_a_new_slurm_key_is_noticed_at_once(world: World) -> None:
    passes = Controller("nodeset", world.reconciler.reconcile)
    REGISTRATION.start_watches(world.context, passes)
    while passes._queue.take() is not None:
        passes._queue.done(SET)
    write_key(world, "second")
    assert passes._queue.take() == SET


async def test_workers_wait_for_the_slurm_key() -> None:
    world = World()
    world.kube.remove(SECRET, AUTH)
    world.nodeset(replicas=2)
    await world.turn(2)
    assert world.kube.pods() == []
    assert world.reason("Degraded") == "SecretKeyNotFound"
    assert "Secret slurm/auth" in world.message("Degraded")
    write_key(world, "made")
    await world.turn(6)
    assert world.status()["slurmIdle"] == 2
    assert all(names.SLURM_KEY_HASH in pod["metadata"]["annotations"] for pod in world.kube.pods())
