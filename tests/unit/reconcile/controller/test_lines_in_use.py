"""Lines of NodeSets and partitions that nothing asks for any more stay while workers or jobs use them."""

import pytest

from kubeslurm.slurm.errors import Unreachable
from kubeslurm.slurm.rest.models import Job, Node, Number
from tests.support.controlplane import KEY, ControlPlane, started

pytestmark = pytest.mark.looptime

WORKER = Node(name="gpu-0", state=("ALLOCATED",), features=("gpu",), slurmd_start_time=Number(set=True, number=1000))
RUNNING = Job(job_id=7, partition="gpu", job_state=("RUNNING",), nodes="gpu-0")
PENDING = Job(job_id=8, partition="cpu,gpu", job_state=("PENDING",))


async def with_partition(plane: ControlPlane) -> ControlPlane:
    """A running cluster with a NodeSet whose partition has a job on a worker."""
    await plane.make_nodeset()
    running = await started(plane)
    assert "PartitionName=gpu" in running.delivered_conf()
    running.slurm.nodes_now = (WORKER,)
    running.slurm.jobs_now = (RUNNING,)
    return running


async def test_a_partition_that_is_disabled_waits_for_its_jobs_and_takes_no_others(plane: ControlPlane) -> None:
    running = await with_partition(plane)
    await running.make_nodeset(partition={"enabled": False})
    await running.roll_out()
    assert "PartitionName=gpu Nodes=gpu MaxTime=UNLIMITED State=DRAIN" in running.slurm.read
    progress = running.condition("Progressing")
    assert progress["reason"] == "PartitionInUse"
    assert "partition gpu is no longer desired and still has jobs (1)" in progress["message"]
    running.slurm.jobs_now = (PENDING,)
    await running.turn(2)
    assert running.trials() == []
    running.slurm.jobs_now = ()
    await running.roll_out()
    assert "PartitionName=gpu" not in running.slurm.read
    assert "NodeSet=gpu" in running.slurm.read
    assert running.condition("Progressing")["status"] == "False"


async def test_the_lines_of_an_orphaned_nodeset_stay_until_its_workers_are_gone(plane: ControlPlane) -> None:
    running = await with_partition(plane)
    live = running.delivered_conf()
    await running.server.remove("gpu", "ns", "nodesets")
    await running.settle()
    await running.roll_out()
    assert running.delivered_conf() == live
    assert "its workers still run" in running.condition("Progressing")["message"]
    running.slurm.nodes_now, running.slurm.jobs_now = (), ()
    await running.roll_out()
    assert "gpu" not in running.slurm.read


async def test_another_hostname_leaves_the_partition_of_the_old_workers(plane: ControlPlane) -> None:
    running = await with_partition(plane)
    await running.make_nodeset(template={"spec": {"hostname": "a100-"}})
    await running.roll_out()
    for line in ("NodeSet=a100", "PartitionName=a100", "NodeSet=gpu", "PartitionName=gpu"):
        assert line in running.slurm.read


@pytest.mark.parametrize("known", [True, False])
async def test_lines_stay_while_slurm_cannot_be_asked(plane: ControlPlane, known: bool) -> None:
    running = await with_partition(plane)
    if known:
        running.slurm.failure = Unreachable("no answer")
    else:
        running.clusters._clusters.pop(KEY)
    await running.make_nodeset(partition={"enabled": False})
    await running.turn(3)
    assert running.trials() == []
    assert "PartitionName=gpu" in running.delivered_conf()
    assert "Slurm cannot be asked" in running.condition("Progressing")["message"]


async def test_a_new_operator_process_keeps_the_lines_too(plane: ControlPlane) -> None:
    running = await with_partition(plane)
    await running.server.remove("gpu", "ns", "nodesets")
    await running.start()
    await running.turn(3)
    assert running.trials() == []
    assert "PartitionName=gpu" in running.delivered_conf()
