"""A partition that is no longer desired while it has a job: the job runs to its end, then the partition goes."""

from tests.support.nodeset import Workers
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
