"""slurmctld comes back with its state after its process or its pod is lost."""

import pytest

from tests.support.nodeset import Workers
from tests.support.places import of_slurmctld, powered_off
from tests.support.slurm import Slurm
from tests.support.waiting import wait_for

# How an administrator says that a machine is switched off for certain.
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service=gone:NoExecute"
KILL = "kill -9 $(cat /run/slurmctld.pid 2>/dev/null || pidof slurmctld)"


def started(slurm: Slurm) -> str:
    """When slurmctld last read its configuration; empty while it does not answer."""
    return slurm.config("BOOT_TIME")


def saved_job(slurm: Slurm, *options: str) -> int:
    """A running job that slurmctld has saved: it writes such news only every few seconds."""
    job = slurm.submit("sleep 600", *options)
    slurm.wait_for_job(job, "RUNNING")
    state = wait_for("slurmctld to answer", lambda: slurm.config("StateSaveLocation"))
    slurm.run("sh", "-c", f"touch {state}/asked && scontrol update jobid={job} comment=save")
    newer = ("find", f"{state}/job_state", "-newer", f"{state}/asked")
    wait_for("the job to be saved", lambda: slurm.run(*newer, check=False).strip())
    return job


def test_a_killed_slurmctld_comes_back_with_its_jobs(slurm: Slurm) -> None:
    job = saved_job(slurm)
    before = wait_for("slurmctld to answer", lambda: started(slurm))
    slurm.run("sh", "-c", KILL, check=False)  # the shell may go with the container
    wait_for("slurmctld to be back", lambda: (now := started(slurm)) != "" and now != before)
    slurm.wait_for_job(job, "RUNNING")


def test_a_first_boot_that_was_cut_short_does_not_end_in_a_crash_loop(slurm: Slurm) -> None:
    assert slurm.config("AccountingStorageType") == "accounting_storage/slurmdbd"
    job = saved_job(slurm)
    before = wait_for("slurmctld to answer", lambda: started(slurm))
    state = wait_for("slurmctld to answer", lambda: slurm.config("StateSaveLocation"))
    # With a database slurmctld does not start without this file, which it writes only some time after its first start.
    slurm.run("sh", "-c", f"rm -f {state}/assoc_usage*; {KILL}", check=False)
    wait_for("slurmctld to be back", lambda: (now := started(slurm)) != "" and now != before)
    slurm.wait_for_job(job, "RUNNING")


def test_a_deleted_pod_comes_back_with_its_jobs(slurm: Slurm) -> None:
    job = saved_job(slurm)
    uid = slurm.get("pod", slurm.controller)["metadata"]["uid"]
    slurm.kubectl("delete", "pod", slurm.controller, "--wait=false")
    wait_for("another pod", lambda: (pod := slurm.find("pod", slurm.controller)) and pod["metadata"]["uid"] != uid)
    slurm.wait_for_job(job, "RUNNING")
    assert set(slurm.hosts("--nodes=1")) < set(slurm.nodes())


def test_a_job_goes_on_while_slurmctld_is_away(slurm: Slurm) -> None:
    workers = Workers(slurm)
    job = workers.run_job(12)
    slurm.kubectl("delete", "pod", slurm.controller, "--wait=true")
    slurm.wait_for_job(job, "COMPLETED")
    workers.unharmed(job)


@pytest.mark.parametrize("sign", ["deleted", "out of service"])
def test_slurmctld_moves_when_its_node_is_gone_for_good(slurm: Slurm, sign: str) -> None:
    place = of_slurmctld(slurm)
    job = saved_job(slurm, f"--nodelist={Workers(slurm).away_from_slurmctld()}")
    with powered_off(slurm, place, with_slurmctld=True):
        try:
            if sign == "deleted":
                slurm.cluster.kubectl("delete", "node", place)
            else:
                slurm.cluster.kubectl("taint", "node", place, OUT_OF_SERVICE)
            wait_for("slurmctld on another node", lambda: of_slurmctld(slurm) != place)
            wait_for("slurmctld to answer", lambda: started(slurm) != "")
            slurm.wait_for_job(job, "RUNNING")
        finally:
            slurm.cluster.kubectl("taint", "node", place, f"{OUT_OF_SERVICE}-", check=False)
