"""ssh onto a worker: only for users with a job there."""

from tests.support.site import Site
from tests.support.slurm import wait_for

POD = "slurm-worker-ssh-0"
NODE = "ssh-0"


def test_ssh_lets_in_only_while_a_job_runs_there(site: Site) -> None:
    assert "in" not in site.ssh("alice", "echo in", pod=POD, check=False)
    job = site.submit_as("alice", "sleep 600", "--partition=ssh", f"--nodelist={NODE}")
    site.wait_for_job(job, "RUNNING")
    wait_for("a way in", lambda: site.ssh("alice", "echo in", pod=POD, check=False).strip() == "in", within=60)
    assert "in" not in site.ssh("bob", "echo in", pod=POD, check=False)
    site.run("scancel", str(job))
    site.wait_for_job(job, "CANCELLED")
    wait_for("the door to close", lambda: "in" not in site.ssh("alice", "echo in", pod=POD, check=False), within=60)
