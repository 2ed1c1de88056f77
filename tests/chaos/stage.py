"""What all acts need: the cluster, a source of chance, the jobs, and a log of what was done."""

import os
import random
import secrets
import time
from typing import Any

import pytest

from tests.chaos.jobs import Jobs
from tests.support.nodeset import Workers
from tests.support.slurm import Slurm


def chosen_seed(capsys: pytest.CaptureFixture[str]) -> int:
    """The seed that was asked for, or another one; printed at once and with a failure: it repeats the run."""
    seed = int(os.environ.get("KUBESLURM_CHAOS_SEED") or secrets.randbelow(10**6))
    text = f"KUBESLURM_CHAOS_SEED={seed}"
    print(text)  # noqa: T201
    with capsys.disabled():
        print(text)  # noqa: T201
    return seed


LINES = 300  # of the log: some minutes


class Stage:
    """A Slurm cluster with its first NodeSet, on which things happen."""

    def __init__(self, slurm: Slurm, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311
        self.slurm = slurm
        self.workers = Workers(slurm)
        self.log: list[str] = [f"KUBESLURM_CHAOS_SEED={seed}"]
        self.jobs = Jobs(self.workers, self.say, self.story)

    def pods(self) -> dict[str, dict[str, Any]]:
        """The pods of all workers, by their Slurm node name."""
        found = self.slurm.items("pods", selector="app.kubernetes.io/name=slurmd")
        return {pod["spec"]["hostname"]: pod for pod in found}

    def hosts(self) -> list[str]:
        """The Kubernetes nodes."""
        return [node.name for node in self.slurm.cluster.spec.nodes]

    def kubectl(self, *args: str) -> None:
        """On objects of the whole cluster; it may be that there is nothing to do."""
        self.slurm.cluster.kubectl(*args, check=False)

    def say(self, text: str) -> None:
        self.log.append(f"{time.strftime('%H:%M:%S', time.gmtime())} {text}")

    def story(self, end: str) -> str:
        """What happened until then, for whoever must find out why."""
        return "\n".join([self.log[0], *self.log[1:][-LINES:], end])
