"""ssh onto a worker: only for users with a job there."""

from tests.support.site import Site
from tests.support.waiting import wait_for

POD = "slurm-worker-ssh-0"
NODE = "ssh-0"
NO_JOB = "you have no active jobs on this node"


def test_ssh_lets_in_only_while_a_job_runs_there(site: Site) -> None:
    wait_for("the word of pam_slurm_adopt", lambda: NO_JOB in site.refusal("alice", pod=POD))
    job = site.submit_as("alice", "sleep 600", "--partition=ssh", f"--nodelist={NODE}")
    site.wait_for_job(job, "RUNNING")
    try:
        wait_for("a way in", lambda: site.ssh("alice", "echo in", pod=POD, check=False).strip() == "in")
        wait_for("the same for bob", lambda: NO_JOB in site.refusal("bob", pod=POD))
    finally:
        site.run("scancel", str(job))
    site.wait_for_job(job, "CANCELLED")
    wait_for("the door to close", lambda: NO_JOB in site.refusal("alice", pod=POD))
