"""Ways in which a job, an admin's decision or a deletion could have been hurt, each closed."""

import copy
from typing import Any

import msgspec
import pytest

from kubeslurm.api import names
from kubeslurm.api.kinds import NODE, NODESET, POD
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.nodeset import Drain
from kubeslurm.build.worker import pod as worker
from kubeslurm.decide.nodeset.slurm.registration import ABSENCES
from kubeslurm.engine.key import Key
from kubeslurm.kube.errors import Forbidden
from kubeslurm.reconcile.nodeset.slurm.jobs import SlurmJobs
from kubeslurm.reconcile.nodeset.slurm.nodes import SlurmNodes
from kubeslurm.slurm.rest.models import Job, Node, Number
from tests.support.world import CLUSTER, SET, World

GPU_0 = Key("slurm", "gpu-0")


def pod(world: World, key: Key = GPU_0) -> Tree:
    return world.kube.trees[POD.plural, key]


def slurm_jobs(world: World) -> SlurmJobs:
    kube: Any = world.kube
    return SlurmJobs(kube, SlurmNodes(kube), lambda _worker: None)


def competing_pod(world: World, hostname: str, **metadata: Any) -> Tree:
    """A pod of another NodeSet that claims the same Slurm name."""
    tree = copy.deepcopy(pod(world))
    tree["metadata"] |= {"name": f"other-{hostname}", "uid": "uid-competing"} | metadata
    tree["metadata"]["ownerReferences"] = [
        {"apiVersion": names.API_VERSION, "kind": "NodeSet", "name": "other", "uid": "uid-other", "controller": True}
    ]
    tree["spec"] = {"hostname": hostname}
    tree["status"] = {"phase": "Pending"}
    return tree


async def test_an_older_pod_of_another_nodeset_keeps_its_node(world: World) -> None:
    """A drains worker gpu-1 while B waits for the same name: B must not resume it."""
    world.kube.put(POD, competing_pod(world, "gpu-1", creationTimestamp="2020-01-01T00:00:00Z"))
    world.slurm.drain("gpu-1", "slurm-operator: Pod (slurm/other-gpu-1) is pending termination for scale-in")
    await world.turn(3)
    assert world.slurm.records["gpu-1"].drain


async def test_no_second_pod_is_made_for_a_name_that_is_taken(world: World) -> None:
    world.kube.put(POD, competing_pod(world, "gpu-2"))
    world.nodeset(replicas=3)
    await world.reconciler.reconcile(SET)
    assert "gpu-2" not in world.pod_names()
    assert "the Slurm name gpu-2 belongs to another pod" in world.message("Degraded")


async def test_a_record_that_another_pod_serves_is_neither_fenced_nor_deleted(world: World) -> None:
    """Our pod is gone, another NodeSet's slurmd registered into the record and runs a job there."""
    job = world.slurm.submit("gpu-1")
    world.kill_pod("gpu-1")
    world.kube.put(POD, competing_pod(world, "gpu-1"))
    world.nodeset(replicas=1)
    await world.turn(3)
    assert job in world.slurm.jobs
    assert "gpu-1" in world.slurm.records


async def test_a_record_of_the_same_name_in_another_cluster_is_left_alone(world: World) -> None:
    """Two Kubernetes clusters made from the same files share one Slurm."""
    await world.turn(2)
    node = world.slurm.records["gpu-0"]
    comment = node.comment.replace(pod(world)["metadata"]["ownerReferences"][0]["uid"], "uid-of-another-cluster")
    theirs = msgspec.structs.replace(node, name="x-7", comment=comment.replace("gpu-0", "gpu-77"))
    world.slurm.records["x-7"] = theirs
    job = world.slurm.submit("x-7")
    for cluster in world.clusters:
        await cluster.snapshot.poll()
    await world.reconciler.reconcile(SET)
    assert job in world.slurm.jobs
    assert "x-7" in world.slurm.records


async def test_a_machine_that_dies_before_its_worker_is_named_leaves_no_ghost() -> None:
    world = World()
    world.nodeset(replicas=0, scalingMode="DaemonSet", pruneSlurmNodeRecords="NodeNotFound")
    await world.turn()
    lost = next(each for each in world.kube.pods() if each["spec"]["hostname"] == "host-1")["metadata"]["name"]
    theirs = Node(name="rack-1", state=("DOWN", "NOT_RESPONDING"), features=("gpu",))
    world.slurm.records["rack-1"] = theirs
    assert not world.slurm.records["host-1"].comment
    world.kube.remove(NODE, Key("", "host-1"))
    world.kill_pod(lost)
    world.start_operator()
    await world.turn(2)
    assert sorted(world.slurm.records) == ["host-0", "host-2", "host-3", "rack-1"]


async def test_an_unnamed_record_stays_while_its_pod_may_be_unheard_of() -> None:
    world = World()
    world.nodeset(replicas=0, scalingMode="DaemonSet", pruneSlurmNodeRecords="NodeNotFound")
    await world.turn()
    started = next(each for each in world.kube.pods() if each["spec"]["hostname"] == "host-1")["metadata"]["name"]
    world.kube.remove(NODE, Key("", "host-1"))
    world.caches.store(POD).remove(Key("slurm", started))  # the watch is behind, the server is not
    assert not world.slurm.records["host-1"].comment
    for cluster in world.clusters:
        await cluster.snapshot.poll()
    await world.reconciler.reconcile(SET)
    assert "host-1" in world.slurm.records


async def test_a_job_that_moved_away_is_not_ended_for_the_node_it_left(world: World) -> None:
    cluster = world.clusters.of(CLUSTER)
    assert cluster is not None
    jobs = slurm_jobs(world)
    job = world.slurm.submit("gpu-0")
    await cluster.jobs.update()
    world.slurm.jobs[job] = msgspec.structs.replace(world.slurm.jobs[job], nodes="gpu-1")
    assert await jobs.end_all(cluster, ["gpu-0"], Drain(policy="Cancel")) == ()
    assert job in world.slurm.jobs


async def test_a_job_that_cannot_be_requeued_is_named(world: World) -> None:
    cluster = world.clusters.of(CLUSTER)
    assert cluster is not None
    job = world.slurm.submit("gpu-0")
    world.slurm.jobs[job] = msgspec.structs.replace(world.slurm.jobs[job], requeue=False)
    (error,) = await slurm_jobs(world).end_all(cluster, ["gpu-0"], Drain(policy="Requeue"))
    assert str(error) == "job 1 on node gpu-0 cannot be requeued: cancel it, or set drain.policy to Cancel"
    assert job in world.slurm.jobs


async def test_a_clock_that_jumps_ahead_ends_no_job(world: World) -> None:
    """The operator's clock is an hour fast; by slurmctld's own, the drain has just begun."""
    job = world.slurm.submit("gpu-1")
    world.slurm.time -= 3600
    world.nodeset(replicas=0, drain={"policy": "Cancel", "deadline": "30m"})
    await world.turn(3)
    assert world.slurm.records["gpu-1"].drain
    assert job in world.slurm.jobs
    world.slurm.time += 1800
    await world.turn()
    assert job not in world.slurm.jobs


async def test_a_younger_neighbour_survives_the_end_of_a_lost_job(world: World) -> None:
    await world.turn(2)
    lost = world.slurm.submit("gpu-0")
    world.restart_container("gpu-0")
    world.slurm.records["gpu-0"] = msgspec.structs.replace(world.slurm.records["gpu-0"], state=("MIXED",))
    young = world.slurm.submit("gpu-0")
    await world.turn(3)
    assert world.slurm.requeued == [lost]
    assert young in world.slurm.jobs
    assert not world.slurm.records["gpu-0"].down


async def test_a_newer_hook_of_ours_restarts_no_worker(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {tree["metadata"]["uid"] for tree in world.kube.pods()}
    monkeypatch.setattr(worker, "PRE_STOP", "true")
    world.start_operator()
    await world.turn(4)
    assert {tree["metadata"]["uid"] for tree in world.kube.pods()} == before


async def test_a_namespace_that_is_being_deleted_lets_the_nodeset_go(world: World) -> None:
    """The namespace controller deletes the shared Service first, and refuses that it is made again."""

    async def refuse(tree: Tree, *, status: bool = False) -> Tree:
        if status:
            return tree
        raise Forbidden(403, "Forbidden", "namespace slurm is being terminated")

    world.delete_nodeset()
    world.kube.apply = refuse  # type: ignore[method-assign]
    await world.turn(5)
    assert world.pod_names() == []
    assert (NODESET.plural, SET) not in world.kube.trees


async def test_a_refused_shared_object_does_not_stop_a_drain(world: World) -> None:
    whole = world.kube.apply

    async def refuse(tree: Tree, *, status: bool = False) -> Tree:
        if not status and tree["kind"] == "Service":
            raise Forbidden(403, "Forbidden", "exceeded quota")
        return await whole(tree, status=status)

    world.kube.apply = refuse  # type: ignore[method-assign]
    world.nodeset(replicas=0)
    await world.turn(3)
    assert world.pod_names() == []
    assert "exceeded quota" in world.message("Degraded")


async def test_a_failed_pod_whose_slot_cools_down_does_not_leave_its_jobs_hanging(world: World) -> None:
    await world.turn(2)
    job = world.slurm.submit("gpu-0")
    tree = copy.deepcopy(pod(world))
    tree["status"]["phase"] = "Failed"
    world.kube.put(POD, tree)
    world.reconciler.failed_slots.failed(world.kube.trees[NODESET.plural, SET]["metadata"]["uid"], "gpu-0")
    await world.turn()
    assert world.slurm.requeued == [job]


async def test_a_job_with_odd_node_names_holds_up_no_nodeset(world: World) -> None:
    odd = Job(job_id=99, job_state=("RUNNING",), nodes="gpu-[0-", start_time=Number(set=True, number=1))
    world.slurm.submit("gpu-1")
    world.slurm.jobs[99] = odd
    world.slurm._settle = lambda: None  # type: ignore[method-assign]
    world.nodeset(replicas=3)
    await world.turn(2)
    assert "gpu-2" in world.pod_names()


async def test_orphaning_the_pods_leaves_them_alone(world: World) -> None:
    tree = copy.deepcopy(world.kube.trees[NODESET.plural, SET])
    tree["metadata"]["finalizers"].append("orphan")
    world.kube.put(NODESET, tree)
    world.delete_nodeset()
    await world.turn(2)
    assert world.pod_names() == ["gpu-0", "gpu-1"]


async def test_absence_needs_time_by_our_own_clock(world: World) -> None:
    """Lists may follow each other within a second, and a kubelet's clock may be off."""
    await world.turn(3)
    del world.slurm.records["gpu-0"]
    await world.turn(5)
    assert absences(world) < ABSENCES
    await pass_time(world)
    assert absences(world) >= ABSENCES


async def test_a_slurmctld_that_lost_its_state_costs_no_worker(world: World) -> None:
    """It comes up on an empty volume for a while; the jobs still run under slurmd."""
    await world.turn(3)
    world.slurm.records.clear()
    await world.turn(2)
    await pass_time(world)
    world.nodeset(replicas=0)
    await world.turn(6)
    assert absences(world) >= ABSENCES
    assert world.pod_names() == ["gpu-0", "gpu-1"]


def absences(world: World) -> int:
    nodeset = world.caches.store(NODESET).get(SET)
    assert nodeset is not None
    return world.reconciler.observer.read(nodeset).facts.absences.get("gpu-0", 0)


async def pass_time(world: World) -> None:
    """Some minutes go by, and Slurm is asked in each."""
    cluster = world.clusters.of(CLUSTER)
    assert cluster is not None
    start = cluster.snapshot._clock()
    for minute in range(1, 5):
        cluster.snapshot._clock = lambda now=start + 60 * minute: now  # type: ignore[misc]
        await cluster.snapshot.poll()
