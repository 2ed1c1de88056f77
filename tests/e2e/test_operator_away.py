"""The operator is not in the way of anything that runs, and catches up when it is back."""

from tests.support.slurm import Slurm, wait_for

CONTROLLER = "controllers.slinky.slurm.net"


def scale_operator(slurm: Slurm, replicas: int) -> None:
    slurm.cluster.kubectl("--namespace=slinky", "scale", "deployment/slurm-operator", f"--replicas={replicas}")


def operators(slurm: Slurm) -> int:
    text = slurm.cluster.kubectl(
        "--namespace=slinky", "get", "pods", "--selector=app.kubernetes.io/name=slurm-operator", "--output=name"
    )
    return len(text.split())


def test_jobs_run_and_changes_wait_while_the_operator_is_away(slurm: Slurm) -> None:
    extra = slurm.get(CONTROLLER, "slurm")["spec"]["extraConf"]
    job = slurm.submit("sleep 5")
    try:
        scale_operator(slurm, 0)
        wait_for("the operator to be gone", lambda: operators(slurm) == 0)
        slurm.patch(CONTROLLER, "slurm", {"spec": {"extraConf": f"{extra}\nMaxJobCount=4567"}})
        assert slurm.run("srun", "--nodes=1", "hostname")
        slurm.wait_for_job(job, "COMPLETED")
        slurm.kubectl("delete", "pod", "slurm-controller-0", "--wait=true")
        wait_for("slurmctld to be back by itself", lambda: slurm.config("MaxJobCount") != "")
        assert slurm.config("MaxJobCount") != "4567"
    finally:
        scale_operator(slurm, 1)
    wait_for("the change to be live", lambda: slurm.config("MaxJobCount") == "4567")
    slurm.patch(CONTROLLER, "slurm", {"spec": {"extraConf": extra}})
    wait_for("the first configuration to be live again", slurm.config_is_live)
