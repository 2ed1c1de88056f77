"""Waits for a new Slurm cluster in plain words and runs the first job on it."""

import time
from collections.abc import Callable
from contextlib import suppress

from kubeslurm.api.meta import Tree
from kubeslurm.cli.up.helm import Access
from kubeslurm.cli.up.releases import LOGINSET, SLURM, SLURM_NAMESPACE
from kubeslurm.local.errors import LocalError
from kubeslurm.local.host.progress import Step

DEADLINE = 240.0
PAUSE = 0.25
# In the order in which one waits for the other.
KINDS = ("accountings", "controllers", "restapis", "nodesets", "loginsets")


def run(access: Access, step: Step) -> tuple[int, str]:
    """Waits until every worker is idle and runs a job on all of them; how many there are, and what the job said."""
    end = time.monotonic() + DEADLINE
    while True:
        workers = _wait(access, step, "workers", "nodesets", counts)
        try:
            return workers, srun(access, workers)
        except LocalError as error:
            # After `down` and `up` the objects speak of the time before for a while.
            if time.monotonic() > end:
                raise
            step.update(note=f"srun: {error}")
            time.sleep(PAUSE)


def wait_for_login(access: Access, step: Step) -> bool:
    """Until users can log in and submit; False when there is no login pod to wait for."""
    return bool(_wait(access, step, "login pods", "loginsets", logins, optional=True))


def until(step: Step, what: str, done: Callable[[], bool]) -> None:
    """Waits for something that is due."""
    end = time.monotonic() + DEADLINE
    while not done():
        step.update(note=f"waiting for {what}")
        if time.monotonic() > end:
            raise LocalError(f"{what} did not come.", f"Look at `kubectl -n {SLURM_NAMESPACE} get slurm,pods`.")
        time.sleep(PAUSE)


def counts(objects: list[Tree]) -> tuple[int, int]:
    """Workers that are wanted, and workers that Slurm can use."""
    nodesets = [each for each in objects if each["kind"] == "NodeSet"]
    wanted = sum(each["spec"].get("replicas", 1) for each in nodesets)
    fields = ("slurmIdle", "slurmAllocated")
    return wanted, sum(each.get("status", {}).get(field, 0) for each in nodesets for field in fields)


def logins(objects: list[Tree]) -> tuple[int, int]:
    """Login pods that are wanted, and login pods that users can submit from."""
    ours = [each for each in objects if (each["kind"], each["metadata"]["name"]) == ("LoginSet", LOGINSET)]
    wanted = sum(each["spec"].get("replicas", 1) for each in ours)
    return wanted, sum(each.get("status", {}).get("readyReplicas", 0) for each in ours)


def waiting_for(objects: list[Tree]) -> str:
    """The first thing that an object says it waits for or suffers from."""
    for kind in ("Degraded", "Progressing"):
        for each in objects:
            for condition in each.get("status", {}).get("conditions", []):
                if condition["type"] == kind and condition["status"] == "True":
                    return f"{each['kind']} {each['metadata']['name']}: {condition['message']}"
    return "the operator has not said anything yet"


def keeps_records(access: Access) -> bool:
    """Whether there is accounting to ask."""
    return bool(access.tree("get", "accountings.slinky.slurm.net", f"--namespace={SLURM_NAMESPACE}")["items"])


def srun(access: Access, workers: int) -> str:
    """The output of the first job, one line per worker."""
    pod = f"statefulset/{SLURM}-controller"
    command = ("exec", f"--namespace={SLURM_NAMESPACE}", pod, "--container=slurmctld", "--")
    return access.run(*command, "timeout", "60", "srun", "--immediate=30", f"--nodes={workers}", "hostname")


def _wait(
    access: Access,
    step: Step,
    what: str,
    kind: str,
    count: Callable[[list[Tree]], tuple[int, int]],
    *,
    optional: bool = False,
) -> int:
    kinds = ",".join(f"{kind}.slinky.slurm.net" for kind in KINDS)
    end = time.monotonic() + DEADLINE
    while True:
        found = access.tree("get", kinds, f"--namespace={SLURM_NAMESPACE}")["items"]
        wanted, there = count(found)
        if (wanted or optional) and there >= wanted:
            return wanted
        awaited = waiting_for(found)
        step.update(done=there, total=wanted or None, note=awaited)
        if time.monotonic() > end:
            remedy = f"Look at `kubectl -n {SLURM_NAMESPACE} get slurm,pods`."
            raise LocalError(f"The {what} did not come up: {awaited}.", remedy)
        _rest(access, kind)


def _rest(access: Access, kind: str) -> None:
    """Until all of a kind are ready, but not long: a kubectl that waits takes nothing from what is starting up."""
    with suppress(LocalError):  # not ready yet, or there is none
        access.run(
            "wait", "--for=condition=Ready", f"{kind}.slinky.slurm.net", "--all", "--timeout=2s",
            f"--namespace={SLURM_NAMESPACE}",
        )  # fmt: skip
    time.sleep(PAUSE)
