"""A new slurm.key: every daemon reads it once, when it starts, so all of them must start anew."""

import base64
import secrets

from tests.support.nodeset import Workers
from tests.support.slurm import Slurm
from tests.support.waiting import wait_for

SECRET = "slurm-auth-slurm"
SLOWLY = 300  # seconds: a kubelet may look at a Secret only every minute and a half


def test_a_new_key_reaches_every_daemon(slurm: Slurm) -> None:
    workers = Workers(slurm)
    before = set(workers.uids().values())
    fresh = base64.b64encode(secrets.token_bytes(1024)).decode()
    slurm.patch("secret", SECRET, {"data": {"slurm.key": fresh}})
    wait_for("other workers", lambda: len(now := workers.uids()) == 2 and not before & set(now.values()), within=SLOWLY)
    slurm.wait_until_idle(2, within=SLOWLY)
    job = slurm.submit("srun true", "--nodes=2")
    slurm.wait_for_job(job, "COMPLETED")
    login = ("exec", "deployment/slurm-login-main", "--", "sinfo", "--noheader", "--Node", "--format=%N")
    nodes = set(workers.names())
    wait_for("an answer to a user", lambda: set(slurm.kubectl(*login, check=False).split()) == nodes, within=SLOWLY)
    wait_for("accounting", lambda: recorded(slurm, job) == "COMPLETED", within=SLOWLY)


def recorded(slurm: Slurm, job: int) -> str:
    """The state of a job in accounting; empty while it is not known there."""
    asked = ("--allocations", "--noheader", "--parsable2", f"--jobs={job}", "--format=State")
    return slurm.run("sacct", *asked, check=False).strip()
