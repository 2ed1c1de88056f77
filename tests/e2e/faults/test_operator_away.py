"""The operator is not in the way of anything that runs, and catches up when it is back."""

from tests.support.nodeset import operators
from tests.support.slurm import CONTROLLER, Slurm
from tests.support.waiting import WITHIN, wait_for


def scale_operator(slurm: Slurm, replicas: int) -> None:
    slurm.cluster.kubectl("--namespace=slinky", "scale", "deployment/slurm-operator", f"--replicas={replicas}")


def test_jobs_run_and_changes_wait_while_the_operator_is_away(slurm: Slurm) -> None:
    go_without_operator(slurm, 20)


def go_without_operator(slurm: Slurm, seconds: int) -> None:
    """A job of that length sees slurmctld restart and ends well, with nobody to help."""
    extra = slurm.get(CONTROLLER, "slurm")["spec"]["extraConf"]
    try:
        scale_operator(slurm, 0)
        wait_for("the operator to be gone", lambda: not operators(slurm.cluster))
        job = slurm.submit(f"sleep {seconds}")
        slurm.patch(CONTROLLER, "slurm", {"spec": {"extraConf": f"{extra}\nMaxJobCount=4567"}})
        assert set(slurm.hosts("--nodes=1")) < set(slurm.nodes())
        slurm.kubectl("delete", "pod", slurm.controller, "--wait=true")
        wait_for("slurmctld to be back by itself", lambda: slurm.config("MaxJobCount") != "")
        slurm.wait_for_job(job, "COMPLETED", within=WITHIN + seconds)
        assert slurm.hosts("--nodes=2") == sorted(slurm.nodes())
        assert wait_for("slurmctld to answer", lambda: slurm.config("MaxJobCount")) != "4567"
        assert not operators(slurm.cluster)
    finally:
        scale_operator(slurm, 1)
    try:
        wait_for("the change to be live", lambda: slurm.config("MaxJobCount") == "4567")
    finally:
        slurm.patch(CONTROLLER, "slurm", {"spec": {"extraConf": extra}})
    wait_for("the first configuration to be live again", slurm.config_is_live)
