"""A NodeSet through its life, with jobs running, in a world that knows when a job would have been killed."""

import msgspec
import pytest

from kubeslurm.api import names
from kubeslurm.api.kinds import NODESET, POD
from kubeslurm.engine.key import Key
from kubeslurm.slurm.rest.models import Number
from tests.support.world import SET, World


@pytest.fixture
async def world() -> World:
    return World()


async def running(world: World, replicas: int) -> World:
    world.nodeset(replicas=replicas)
    await world.turn(4)
    assert world.pod_names() == [f"gpu-{n}" for n in range(replicas)]
    assert sorted(world.slurm.records) == [f"gpu-{n}" for n in range(replicas)]
    return world


async def test_workers_are_created_registered_and_shown(world: World) -> None:
    await running(world, 3)
    await world.turn()
    assert world.status()["slurmIdle"] == 3
    assert world.message("Ready") == "3 of 3 workers are ready"
    pod = world.kube.trees[POD.plural, Key("slurm", "gpu-0")]
    assert "SlurmNodeStateIdle" in {each["type"] for each in pod["status"]["conditions"]}


async def test_a_worker_costs_one_creation_and_one_patch(world: World) -> None:
    await running(world, 3)
    await world.turn(3)
    pods = [write for write in world.kube.writes if " pods " in write]
    assert sorted(pods) == sorted([f"{verb} pods gpu-{n}" for n in range(3) for verb in ("create", "patch")])


async def test_a_quiet_nodeset_is_not_written_at_all(world: World) -> None:
    await running(world, 3)
    await world.turn(3)
    writes, calls = len(world.kube.writes), len(world.slurm.calls)
    await world.turn(3)
    assert len(world.kube.writes) == writes
    assert world.slurm.calls[calls:] == ["nodes"] * 3


async def test_scale_in_of_idle_workers_leaves_no_ghost(world: World) -> None:
    await running(world, 3)
    world.nodeset(replicas=1)
    await world.turn(3)
    assert world.pod_names() == ["gpu-0"]
    assert sorted(world.slurm.records) == ["gpu-0"]


async def test_scale_in_waits_for_the_jobs_and_says_so(world: World) -> None:
    await running(world, 2)
    job = world.slurm.submit("gpu-0", "gpu-1")
    world.nodeset(replicas=1)
    await world.turn(5)
    assert world.pod_names() == ["gpu-0", "gpu-1"]
    assert "draining 1 worker for scale-in" in world.message("Progressing")
    world.slurm.finish(job)
    await world.turn(3)
    assert world.pod_names() == ["gpu-0"]
    assert world.slurm.requeued == []
    assert world.violations == []


async def test_a_busy_worker_is_protected_from_eviction_while_slurm_is_away(world: World) -> None:
    await running(world, 1)
    world.slurm.submit("gpu-0")
    await world.turn(2)
    world.slurm.reachable = False
    await world.turn(3)
    pod = world.kube.trees[POD.plural, Key("slurm", "gpu-0")]
    assert pod["metadata"]["labels"][names.LABEL_POD_PROTECT] == "true"
    assert "SlurmNodeStateMixed" in {each["type"] for each in pod["status"]["conditions"]}


@pytest.mark.parametrize("how", ["RestApi deleted", "slurmrestd away", "operator restarted without Slurm"])
@pytest.mark.parametrize("busy", [True, False])
async def test_nothing_is_removed_while_slurm_cannot_be_asked(world: World, how: str, busy: bool) -> None:
    await running(world, 2)
    if busy:
        world.slurm.submit("gpu-0", "gpu-1")
    await world.turn()
    if how == "operator restarted without Slurm":
        world.start_operator()
    world.slurm.reachable = how == "RestApi deleted"
    if how == "RestApi deleted":
        world.disconnect()
    else:
        await world.turn(6)
    world.nodeset(replicas=0)
    await world.turn(6)
    assert world.pod_names() == ["gpu-0", "gpu-1"]
    assert "Slurm cannot be asked" in world.message("Degraded")


async def test_scaling_back_out_resumes_a_draining_worker(world: World) -> None:
    await running(world, 2)
    job = world.slurm.submit("gpu-0", "gpu-1")
    world.nodeset(replicas=1)
    await world.turn(2)
    assert world.slurm.is_draining("gpu-1")
    world.nodeset(replicas=2)
    await world.turn(3)
    assert not world.slurm.records["gpu-1"].drain
    assert names.POD_CORDON not in world.kube.trees[POD.plural, Key("slurm", "gpu-1")]["metadata"]["annotations"]
    assert job in world.slurm.jobs


async def test_workers_that_come_back_are_usable_at_once(world: World) -> None:
    await running(world, 3)
    for replicas in (1, 3):
        world.nodeset(replicas=replicas)
        await world.turn(5)
    assert all(world.slurm.is_idle(f"gpu-{n}") for n in range(3))


async def test_a_rolling_update_drains_each_worker_once_and_waits_for_jobs(world: World) -> None:
    await running(world, 4)
    job = world.slurm.submit("gpu-3")
    world.nodeset(replicas=4, extraConf="Weight=2")
    await world.turn(12)
    assert job in world.slurm.jobs
    assert world.slurm.is_draining("gpu-3")
    world.slurm.finish(job)
    await world.turn(12)
    drains = [call for call in world.slurm.calls if "DRAIN" in call]
    assert sorted(drains) == [f"update gpu-{n} ('DRAIN',)" for n in range(4)]
    assert world.status()["updatedReplicas"] == 4
    assert all(world.slurm.is_idle(f"gpu-{n}") for n in range(4))
    assert world.violations == []


async def test_a_worker_that_vanishes_in_the_middle_of_an_update_is_made_again(world: World) -> None:
    await running(world, 3)
    busy = world.slurm.submit("gpu-0")
    world.nodeset(replicas=3, slurmd={"image": "slurmd:2"})
    await world.turn(2)
    world.kill_pod(next(name for name in world.pod_names() if name != "gpu-0"))
    await world.turn(12)
    world.slurm.finish(busy)
    await world.turn(12)
    assert world.pod_names() == ["gpu-0", "gpu-1", "gpu-2"]
    assert world.status()["updatedReplicas"] == 3
    assert all(map(world.slurm.is_idle, world.slurm.records))


async def test_rolling_a_worker_takes_at_most_five_writes(world: World) -> None:
    await running(world, 2)
    await world.turn(2)
    before = len(world.kube.writes)
    world.nodeset(replicas=2, extraConf="Weight=2")
    await world.turn(12)
    assert len([write for write in world.kube.writes[before:] if " pods gpu-0" in write]) <= 5


async def test_cordon_drains_and_uncordon_resumes(world: World) -> None:
    await running(world, 2)
    world.cordon("host-1")
    await world.turn(2)
    held = next(node for node in world.slurm.records.values() if node.drain)
    assert held.reason.startswith("slurm-operator: Node (host-1) was cordoned")
    world.cordon("host-1", cordoned=False)
    await world.turn(3)
    assert all(map(world.slurm.is_idle, world.slurm.records))


async def test_an_admins_drain_survives_cordon_uncordon_and_an_operator_restart(world: World) -> None:
    await running(world, 1)
    world.slurm.drain("gpu-0", "bad fan")
    for cordoned in (True, False):
        world.cordon("host-0", cordoned=cordoned)
        await world.turn(2)
        world.start_operator()
        await world.turn(2)
    assert world.slurm.records["gpu-0"].drain
    assert world.slurm.records["gpu-0"].reason == "bad fan"


async def test_a_users_cordon_of_a_pod_holds_until_it_is_lifted(world: World) -> None:
    await running(world, 2)
    key = Key("slurm", "gpu-0")
    await world.kube.patch(POD, key, {"metadata": {"annotations": {names.POD_CORDON: "true"}}})
    await world.turn(2)
    world.nodeset(replicas=3)
    await world.turn(3)
    assert world.slurm.records["gpu-0"].drain
    await world.kube.patch(POD, key, {"metadata": {"annotations": {names.POD_CORDON: None}}})
    await world.turn(2)
    assert world.slurm.is_idle("gpu-0")


async def test_a_pod_that_vanished_under_a_job_is_fenced_and_comes_back(world: World) -> None:
    await running(world, 2)
    job, other = world.slurm.submit("gpu-0"), world.slurm.submit("gpu-1")
    await world.turn(2)
    world.kill_pod("gpu-0")
    await world.turn(4)
    assert world.slurm.requeued == [job]
    assert other in world.slurm.jobs
    assert world.slurm.is_idle("gpu-0")


async def test_a_container_restarted_under_a_job_is_fenced(world: World) -> None:
    await running(world, 2)
    job = world.slurm.submit("gpu-0", "gpu-1")
    await world.turn(2)
    world.restart_container("gpu-0")
    await world.turn(4)
    assert world.slurm.requeued == [job]
    assert all(map(world.slurm.is_idle, world.slurm.records))


async def test_a_job_that_started_after_the_restart_is_left_alone(world: World) -> None:
    await running(world, 1)
    world.restart_container("gpu-0")
    job = world.slurm.submit("gpu-0")
    await world.turn(4)
    assert job in world.slurm.jobs
    assert world.slurm.requeued == []


async def test_deleting_a_nodeset_waits_for_its_jobs_and_leaves_nothing(world: World) -> None:
    await running(world, 2)
    job = world.slurm.submit("gpu-1")
    world.delete_nodeset()
    await world.turn(5)
    assert world.pod_names() == ["gpu-1"]
    world.slurm.finish(job)
    await world.turn(5)
    assert world.pod_names() == []
    assert world.slurm.records == {}
    assert (NODESET.plural, SET) not in world.kube.trees
    assert world.violations == []


async def test_the_force_annotation_ends_a_deletion_that_slurm_holds_up(world: World) -> None:
    await running(world, 1)
    world.slurm.reachable = False
    await world.turn(6)
    world.delete_nodeset()
    await world.turn(3)
    assert world.pod_names() == ["gpu-0"]
    await world.kube.patch(NODESET, SET, {"metadata": {"annotations": {names.FORCE_DELETE: "true"}}})
    await world.turn(3)
    assert world.pod_names() == []


async def test_a_nodeset_without_a_controller_says_so(world: World) -> None:
    world.nodeset(replicas=1)
    tree = world.kube.trees[NODESET.plural, SET]
    tree["spec"]["controllerRef"]["name"] = "other"
    world.kube.put(NODESET, tree)
    await world.turn()
    assert "Controller slurm/other does not exist" in world.message("Degraded")
    assert world.pod_names() == []


async def test_a_drain_deadline_requeues_what_still_runs(world: World) -> None:
    await running(world, 1)
    job = world.slurm.submit("gpu-0")
    world.nodeset(replicas=0, drain={"policy": "Requeue", "deadline": "0s"})
    await world.turn(2)
    long_ago = Number(set=True, number=1000)
    world.slurm.records["gpu-0"] = msgspec.structs.replace(world.slurm.records["gpu-0"], reason_changed_at=long_ago)
    await world.turn(4)
    assert world.slurm.requeued == [job]
    assert world.pod_names() == []
