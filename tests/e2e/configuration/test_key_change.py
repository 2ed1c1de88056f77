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
    slurm.patch("secret", SECRET, {"data": {"slurm.key": new_key()}})
    wait_for("other workers", lambda: len(now := workers.uids()) == 2 and not before & set(now.values()), within=SLOWLY)
    slurm.wait_until_idle(2, within=SLOWLY)
    job = slurm.submit("srun true", "--nodes=2")
    slurm.wait_for_job(job, "COMPLETED")
    login = ("exec", "deployment/slurm-login-main", "--", "sinfo", "--noheader", "--Node", "--format=%N")
    nodes = set(workers.names())
    wait_for("an answer to a user", lambda: set(slurm.kubectl(*login, check=False).split()) == nodes, within=SLOWLY)
    wait_for("accounting", lambda: recorded(slurm, job) == "COMPLETED", within=SLOWLY)


def test_a_new_key_waits_for_running_jobs(slurm: Slurm) -> None:
    workers = Workers(slurm)
    former = slurm.get("secret", SECRET)["data"]
    job = workers.run_job(600)
    before, pod = workers.uids(), slurm.get("pod", slurm.controller)["metadata"]["uid"]
    try:
        slurm.patch("secret", SECRET, {"data": {"slurm.key": new_key()}})
        wait_for("the reason", lambda: slurm.conditions("controller")["Progressing"]["reason"] == "KeyChangeWaiting")
        assert slurm.conditions("controller")["Ready"]["status"] == "True"
        assert slurm.job_state(job) == "RUNNING"
        assert workers.uids() == before
        assert slurm.get("pod", slurm.controller)["metadata"]["uid"] == pod
    finally:
        slurm.patch("secret", SECRET, {"data": former})
    wait_for("the end of it", lambda: slurm.conditions("controller")["Progressing"]["status"] == "False")
    assert workers.uids() == before
    workers.finish(job)


def new_key() -> str:
    return base64.b64encode(secrets.token_bytes(1024)).decode()


def recorded(slurm: Slurm, job: int) -> str:
    """The state of a job in accounting; empty while it is not known there."""
    asked = ("--allocations", "--noheader", "--parsable2", f"--jobs={job}", "--format=State")
    return slurm.run("sacct", *asked, check=False).strip()
