"""The operator is not in the way of anything that runs, and catches up when it is back."""

from tests.support.slurm import Slurm
from tests.support.waiting import wait_for

CONTROLLER = "controllers.slinky.slurm.net"


def scale_operator(slurm: Slurm, replicas: int) -> None:
    slurm.cluster.kubectl("--namespace=slinky", "scale", "deployment/slurm-operator", f"--replicas={replicas}")


def operators(slurm: Slurm) -> int:
    text = slurm.cluster.kubectl(
        "--namespace=slinky", "get", "pods", "--selector=app.kubernetes.io/name=slurm-operator", "--output=name"
    )
    return len(text.split())


def test_jobs_run_and_changes_wait_while_the_operator_is_away_for_a_minute(slurm: Slurm) -> None:
    extra = slurm.get(CONTROLLER, "slurm")["spec"]["extraConf"]
    try:
        scale_operator(slurm, 0)
        wait_for("the operator to be gone", lambda: operators(slurm) == 0)
        job = slurm.submit("sleep 60")
        slurm.patch(CONTROLLER, "slurm", {"spec": {"extraConf": f"{extra}\nMaxJobCount=4567"}})
        assert slurm.run("srun", "--nodes=1", "hostname")
        slurm.kubectl("delete", "pod", "slurm-controller-0", "--wait=true")
        wait_for("slurmctld to be back by itself", lambda: slurm.config("MaxJobCount") != "")
        slurm.wait_for_job(job, "COMPLETED")
        assert slurm.run("srun", "--nodes=2", "hostname")
        assert wait_for("slurmctld to answer", lambda: slurm.config("MaxJobCount")) != "4567"
        assert operators(slurm) == 0
    finally:
        scale_operator(slurm, 1)
    try:
        wait_for("the change to be live", lambda: slurm.config("MaxJobCount") == "4567")
    finally:
        slurm.patch(CONTROLLER, "slurm", {"spec": {"extraConf": extra}})
    wait_for("the first configuration to be live again", slurm.config_is_live)
