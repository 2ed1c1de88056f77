"""A user who exists on no machine submits through REST: the token says who it is."""

import base64
import json
from collections.abc import Iterator

import pytest

from tests.support.site import Site
from tests.support.waiting import wait_for
from tests.support.web import fetch

TOKEN = {
    "apiVersion": "slinky.slurm.net/v1beta1",
    "kind": "Token",
    "metadata": {"name": "carol"},
    "spec": {
        "jwtKeyRef": {"name": "slurm-auth-jwt", "key": "jwt.key"},
        "username": "carol",
        "identity": {
            "uid": 7003,
            "gid": 7000,
            "gids": [7000],
            "gecos": "Carol",
            "dir": "/tmp",  # noqa: S108
            "shell": "/bin/sh",
        },
    },
}


@pytest.fixture
def token(site: Site) -> Iterator[str]:
    """A token that says who carol is."""
    site.kubectl("apply", "--filename=-", stdin=json.dumps(TOKEN))
    secret = wait_for("the token", lambda: site.find("secret", "carol-jwt-carol"))
    yield base64.b64decode(secret["data"]["SLURM_JWT"]).decode()
    site.kubectl("delete", "tokens.slinky.slurm.net", "carol")


def test_a_user_who_exists_nowhere_runs_a_job_by_the_claims_of_a_token(site: Site, token: str) -> None:
    job = submit(site, token, "#!/bin/sh\nid --user > /tmp/carol.txt\n")
    site.wait_for_job(job, "COMPLETED")
    uid, node = site.run("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%U %N").split()
    assert uid == "7003"
    assert site.exec(f"slurm-worker-{node}", "slurmd", "cat", "/tmp/carol.txt").strip() == "7003"  # noqa: S108


def submit(site: Site, token: str, script: str) -> int:
    """The id of a job sent to slurmrestd with a user's token."""
    pods = site.items("pods", selector="app.kubernetes.io/name=slurmrestd")
    (address,) = (pod["status"]["podIP"] for pod in pods if "deletionTimestamp" not in pod["metadata"])
    job = {"name": "from-afar", "current_working_directory": "/tmp", "environment": ["PATH=/usr/bin:/bin"]}  # noqa: S108
    body = json.dumps({"script": script, "job": job})
    headers = {"X-SLURM-USER-TOKEN": token, "Content-Type": "application/json"}
    url = f"http://{address}:6820/slurm/v0.0.44/job/submit"
    return int(json.loads(fetch(site.cluster, url, headers=headers, body=body))["job_id"])
