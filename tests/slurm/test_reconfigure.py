"""What a reconfigure does to jobs: slurmctld and every slurmd start again in place."""

import asyncio

from kubeslurm.slurm.rest.client import SlurmClient
from tests.slurm.cluster import SCRIPT, Cluster
from tests.slurm.hosts import wait_for
from tests.slurm.lab import account

TIMES = 4


def start(cluster: Cluster) -> int:
    """A job that Slurm has just started; its script may not have begun."""
    controller = cluster.controller
    cluster.used = True
    job = int(controller.run("sbatch", "--parsable", "--nodelist=n1", "-o", "/dev/null", SCRIPT))
    shown = ("squeue", "-h", "-t", "RUNNING", "-j", str(job))
    wait_for("the job to start", lambda: controller.run(*shown).strip(), story=lambda: account(controller))
    return job


async def test_a_job_that_has_just_started_goes_on_and_its_node_never_looks_idle(
    cluster: Cluster, client: SlurmClient
) -> None:
    for _ in range(TIMES):
        job = start(cluster)
        reconfigure = asyncio.create_task(asyncio.to_thread(cluster.controller.run, "scontrol", "reconfigure"))
        # The gate would take an idle node that is drained for one without jobs.
        for _ in range(100):
            node = await client.node("n1")
            assert node is not None
            assert node.busy
        await reconfigure
        await asyncio.to_thread(wait_for, "the script to run", lambda number=job: cluster.begun(str(number)) == ["n1"])
        fate = cluster.controller.run("squeue", "-h", "-j", str(job), "--Format=State:20,RestartCnt:20")
        assert fate.split() == ["RUNNING", "0"]
        cluster.controller.run("scancel", str(job))
        wait_for("its end", lambda: not cluster.controller.run("squeue", "-h").strip())
