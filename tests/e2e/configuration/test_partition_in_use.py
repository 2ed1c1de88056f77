"""A partition that is no longer desired while it has a job: the job runs to its end, then the partition goes."""

from tests.support.nodeset import Workers
from tests.support.settled import is_as_desired
from tests.support.slurm import CONTROLLER, NODESET, Slurm
from tests.support.waiting import wait_for

OPTIONS = "MaxTime=UNLIMITED"


def partitions(slurm: Slurm) -> set[str]:
    return set(slurm.run("sinfo", "--noheader", "--format=%R", check=False).split())


def reason(slurm: Slurm) -> str:
    return slurm.conditions(CONTROLLER)["Progressing"]["reason"]


def test_a_job_outlives_the_wish_for_its_partition(slurm: Slurm) -> None:
    workers, before = Workers(slurm), partitions(slurm)
    given = slurm.get(NODESET, workers.name)["spec"].get("partition")
    try:
        workers.change({"partition": {"enabled": True, "config": OPTIONS}})
        (name,) = wait_for("the partition", lambda: partitions(slurm) - before)
        job = workers.run_job(600, f"--partition={name}")
        workers.change({"partition": {"enabled": False, "config": OPTIONS}})
        wait_for("the status to name it", lambda: reason(slurm) == "PartitionInUse")
        wait_for(
            "the partition to be closed", lambda: "State=DRAIN" in slurm.run("scontrol", "show", "partition", name)
        )
        refused = slurm.run("sbatch", f"--partition={name}", "--output=/dev/null", "--wrap=true", check=False)
        assert refused == "", "a closed partition takes no job"
        workers.finish(job)
        wait_for("the partition to go", lambda: partitions(slurm) == before)
    finally:
        workers.change({"partition": given})
    wait_for("the configuration to run", slurm.config_is_live)
    slurm.wait_until_idle(2)


def test_a_job_outlives_its_nodeset_in_a_partition_of_its_own(slurm: Slurm) -> None:
    before, partition = partitions(slurm), {"enabled": True, "config": OPTIONS}
    own = Workers.create(slurm, "leaving", "leaving-", partition=partition)
    try:
        wait_for("the worker", lambda: slurm.nodes().get("leaving-0") == "idle")
        wait_for("slurmctld to run with the new NodeSet", lambda: is_as_desired(slurm))
        job = own.run_job(600, "--partition=leaving")
        slurm.kubectl("delete", NODESET, "leaving", "--cascade=orphan", "--wait=true", "--timeout=180s")
        wait_for("the status to name it", lambda: reason(slurm) == "PartitionInUse")
        assert partitions(slurm) == before | {"leaving"}
        Workers.create(slurm, "leaving", "leaving-", partition=partition)
        wait_for("the lines to be desired again", lambda: reason(slurm) != "PartitionInUse")
        own.finish(job)
    finally:
        own.delete()
    wait_for("the partition to go", lambda: partitions(slurm) == before)
    slurm.wait_until_idle(2)
