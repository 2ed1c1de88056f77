"""ssh onto a worker: only for users with a job there."""

from collections.abc import Iterator

import pytest

from tests.support.site import TAG, Site
from tests.support.slurm import wait_for

POD = "slurm-worker-ssh-0"
NODE = "ssh-0"


@pytest.fixture
def worker(site: Site) -> Iterator[str]:
    """A worker that users may log into."""
    volume = {"name": "home", "persistentVolumeClaim": {"claimName": "home"}}
    mount = {"name": "home", "mountPath": "/home"}
    nodeset = {
        "replicas": 1,
        "oversubscribeNode": True,
        "ssh": {"enabled": True},
        "slurmd": {"image": f"localhost/slurmd-ssh:{TAG}", "volumeMounts": [mount]},
        "podSpec": {"volumes": [volume]},
    }
    site.install({"nodesets": {"ssh": nodeset}})
    wait_for("the worker", lambda: site.nodes().get(NODE) == "idle", within=180)
    yield POD
    site.install({})
    wait_for("the worker to go", lambda: site.find("pod", POD) is None, within=180)


def test_ssh_lets_in_only_while_a_job_runs_there(site: Site, worker: str) -> None:
    assert "in" not in site.ssh("alice", "echo in", pod=worker, check=False)
    job = site.submit_as("alice", "sleep 600", f"--nodelist={NODE}")
    site.wait_for_job(job, "RUNNING")
    wait_for("a way in", lambda: site.ssh("alice", "echo in", pod=worker, check=False).strip() == "in", within=60)
    assert "in" not in site.ssh("bob", "echo in", pod=worker, check=False)
    site.run("scancel", str(job))
    site.wait_for_job(job, "CANCELLED")
