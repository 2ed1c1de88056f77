"""Waits until a new Slurm cluster is ready, shows what it waits for, and runs a first job."""

import time
from collections.abc import Callable
from contextlib import suppress

import msgspec

from kubeslurm.api.meta import Tree
from kubeslurm.cli.up import slurm_nodes
from kubeslurm.cli.up.access import Access
from kubeslurm.cli.up.releases import LOGINSET, SLURM_NAMESPACE
from kubeslurm.local.errors import LocalError
from kubeslurm.local.host.progress import Step

TIMEOUT = 240.0
PAUSE = 0.25
PATIENCE, BRIEFLY = 30, 3  # seconds to wait for idle workers, and for workers that run other jobs
BUSY_TRIES = 3
OVERVIEW = f"`kubectl -n {SLURM_NAMESPACE} get slurm,pods`"
# In the order of their dependencies.
KINDS = ("accountings", "controllers", "restapis", "nodesets", "loginsets")


class FirstJob(msgspec.Struct, frozen=True):
    """The result of the first job, and how to go on: the command that logs in, and whether there is accounting."""

    workers: int
    output: str = ""
    skipped: str = ""  # why no job was run
    login: str = ""
    accounting: bool = False


def run(access: Access, step: Step, *, since: float) -> FirstJob:
    """Wait until all workers take jobs and run a job on them; `since` is when the cluster was started, if it was."""
    end, tries = time.monotonic() + TIMEOUT, 0
    while True:
        workers = _wait(access, step, "workers", "nodesets", worker_counts)
        busy = False
        try:
            ready = [node for node in slurm_nodes.read(access) if node.usable(since)]
            if not workers:
                return FirstJob(0, skipped="There are no workers")
            if len(ready) >= workers:
                busy = any(node.busy for node in ready)
                return FirstJob(workers, _srun(access, workers, BRIEFLY if busy else PATIENCE))
            note = f"{len(ready)} of {workers} workers have registered with slurmctld"
        except LocalError as error:
            # After `down` and `up`, objects show the state of the last run for a while.
            note = str(error)
        tries = tries + 1 if busy else 0
        if tries == BUSY_TRIES:  # not only by what Slurm still cleans up
            return FirstJob(workers, skipped="The workers are busy with other jobs")
        if time.monotonic() > end:
            raise LocalError(f"The first job could not be run: {note}.", f"See {OVERVIEW}.")
        step.update(note=note)
        time.sleep(PAUSE)


def wait_for_login(access: Access, step: Step) -> bool:
    """Wait until users can log in and submit jobs; returns False if there is no login pod."""
    return bool(_wait(access, step, "login pods", "loginsets", login_counts))


def wait_until(step: Step, what: str, done: Callable[[], bool]) -> None:
    """Wait until `done` returns True."""
    end = time.monotonic() + TIMEOUT
    while not done():
        step.update(note=f"waiting for {what}")
        if time.monotonic() > end:
            raise LocalError(f"Timed out waiting for {what}.", f"See {OVERVIEW}.")
        time.sleep(PAUSE)


def worker_counts(objects: list[Tree]) -> tuple[int, int]:
    """The desired number of workers, and the number of workers that Slurm can use."""
    nodesets = [each for each in objects if each["kind"] == "NodeSet"]
    desired = sum(each["spec"].get("replicas", 1) for each in nodesets)
    fields = ("slurmIdle", "slurmAllocated")
    return desired, sum(each.get("status", {}).get(field, 0) for each in nodesets for field in fields)


def login_counts(objects: list[Tree]) -> tuple[int, int]:
    """The desired number of login pods, and the number of ready ones."""
    ours = [each for each in objects if (each["kind"], each["metadata"]["name"]) == ("LoginSet", LOGINSET)]
    desired = sum(each["spec"].get("replicas", 1) for each in ours)
    return desired, sum(each.get("status", {}).get("readyReplicas", 0) for each in ours)


def waiting_for(objects: list[Tree]) -> str:
    """The message of the first object that is degraded, or else of the first that is progressing."""
    for kind in ("Degraded", "Progressing"):
        for each in objects:
            for condition in each.get("status", {}).get("conditions", []):
                if condition["type"] == kind and condition["status"] == "True":
                    return f"{each['kind']} {each['metadata']['name']}: {condition['message']}"
    return "the operator has not set any condition yet"


def has_accounting(access: Access) -> bool:
    """Whether the cluster has accounting."""
    return bool(access.get_json("get", "accountings.slinky.slurm.net", f"--namespace={SLURM_NAMESPACE}")["items"])


def _srun(access: Access, workers: int, patience: int) -> str:
    """The output of a job on all workers, one line for each."""
    return slurm_nodes.run(access, "srun", f"--immediate={patience}", f"--nodes={workers}", "hostname")


def _wait(
    access: Access,
    step: Step,
    what: str,
    kind: str,
    count: Callable[[list[Tree]], tuple[int, int]],
) -> int:
    kinds = ",".join(f"{kind}.slinky.slurm.net" for kind in KINDS)
    end = time.monotonic() + TIMEOUT
    while True:
        found = access.get_json("get", kinds, f"--namespace={SLURM_NAMESPACE}")["items"]
        desired, ready = count(found)
        if ready >= desired:
            return desired
        reason = waiting_for(found)
        step.update(done=ready, total=desired or None, note=reason)
        if time.monotonic() > end:
            raise LocalError(f"The {what} did not become ready: {reason}.", f"See {OVERVIEW}.")
        _wait_briefly(access, kind)


def _wait_briefly(access: Access, kind: str) -> None:
    """Wait until all objects of a kind are ready, for two seconds at most; a waiting kubectl uses no CPU."""
    with suppress(LocalError):  # not ready yet, or there are none
        access.run(
            "wait", "--for=condition=Ready", f"{kind}.slinky.slurm.net", "--all", "--timeout=2s",
            f"--namespace={SLURM_NAMESPACE}",
        )  # fmt: skip
    time.sleep(PAUSE)
