"""Waits for a new Slurm cluster in plain words and runs the first job on it."""

import time

from kubeslurm.api.meta import Tree
from kubeslurm.cli.helm import Access
from kubeslurm.cli.releases import SLURM, SLURM_NAMESPACE
from kubeslurm.local.errors import LocalError
from kubeslurm.local.progress import Step

DEADLINE = 240.0
PAUSE = 0.25
KINDS = "controllers.slinky.slurm.net,restapis.slinky.slurm.net,nodesets.slinky.slurm.net"


def wait_for_workers(access: Access, step: Step) -> int:
    """Until every worker is idle; how many there are. Says on the way what is awaited."""
    end = time.monotonic() + DEADLINE
    while True:
        found = access.tree("get", KINDS, f"--namespace={SLURM_NAMESPACE}")["items"]
        workers, idle = counts(found)
        if workers and idle >= workers:
            return workers
        awaited = waiting_for(found)
        step.update(done=idle, total=workers or None, note=awaited)
        if time.monotonic() > end:
            raise LocalError(
                f"The workers did not come up: {awaited}.", f"Look at `kubectl -n {SLURM_NAMESPACE} get slurm,pods`."
            )
        time.sleep(PAUSE)


def counts(objects: list[Tree]) -> tuple[int, int]:
    """Workers that are wanted, and workers that Slurm can use."""
    nodesets = [each for each in objects if each["kind"] == "NodeSet"]
    wanted = sum(each["spec"].get("replicas", 1) for each in nodesets)
    fields = ("slurmIdle", "slurmAllocated")
    return wanted, sum(each.get("status", {}).get(field, 0) for each in nodesets for field in fields)


def waiting_for(objects: list[Tree]) -> str:
    """The first thing that an object says it waits for or suffers from."""
    for kind in ("Degraded", "Progressing"):
        for each in objects:
            for condition in each.get("status", {}).get("conditions", []):
                if condition["type"] == kind and condition["status"] == "True":
                    return f"{each['kind']} {each['metadata']['name']}: {condition['message']}"
    return "the operator has not said anything yet"


def srun(access: Access, workers: int) -> str:
    """The output of the first job, one line per worker."""
    pod = f"statefulset/{SLURM}-controller"
    command = ("exec", f"--namespace={SLURM_NAMESPACE}", pod, "--container=slurmctld", "--")
    return access.run(*command, "srun", f"--nodes={workers}", "hostname")
