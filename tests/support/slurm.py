"""A running Slurm cluster as end-to-end tests see it: through kubectl and Slurm's own commands."""

import json
import subprocess
from typing import Any

from kubeslurm.local.cluster.cluster import Cluster
from tests.support.waiting import WITHIN, wait_for

PATIENCE = "300"  # seconds for a command that may wait for nodes, and must not wait for ever
KINDS = "controllers.slinky.slurm.net,restapis.slinky.slurm.net,nodesets.slinky.slurm.net"


class Slurm:
    """One Slurm cluster of the test's Kubernetes cluster."""

    def __init__(self, cluster: Cluster, namespace: str = "slurm", name: str = "slurm") -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.name = name

    def kubectl(self, *args: str, stdin: str | None = None, check: bool = True) -> str:
        return self.cluster.kubectl(f"--namespace={self.namespace}", *args, stdin=stdin, check=check)

    def get(self, kind: str, name: str = "", *options: str) -> dict[str, Any]:
        """An object, or a list of them, as JSON."""
        args = [name] if name else []
        found: dict[str, Any] = json.loads(self.kubectl("get", kind, *args, *options, "--output=json"))
        return found

    def find(self, kind: str, name: str) -> dict[str, Any] | None:
        """An object, or None when it does not exist."""
        text = self.kubectl("get", kind, name, "--ignore-not-found", "--output=json")
        return json.loads(text) if text.strip() else None

    def patch(self, kind: str, name: str, change: dict[str, Any]) -> None:
        self.kubectl("patch", kind, name, "--type=merge", f"--patch={json.dumps(change)}")

    def run(self, *command: str, check: bool = True) -> str:
        """The output of a command in the slurmctld container."""
        pod = f"{self.name}-controller-0"
        return self.kubectl("exec", pod, "--container=slurmctld", "--", "timeout", PATIENCE, *command, check=check)

    def start(self, *command: str) -> "subprocess.Popen[str]":
        """A command in the slurmctld container that goes on while the test does something else."""
        pod = f"{self.name}-controller-0"
        argv = self.cluster.kubectl_command(
            f"--namespace={self.namespace}", "exec", pod, "--container=slurmctld", "--", *command
        )
        return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def nodes(self) -> dict[str, str]:
        """State of every Slurm node by name; empty while slurmctld does not answer."""
        text = self.run("sinfo", "--noheader", "--Node", "--format=%N %T", check=False)
        return dict(line.split(None, 1) for line in text.splitlines() if len(line.split()) == 2)

    def wait_until_idle(self, count: int, *, within: float = WITHIN) -> None:
        """Until that many nodes are idle, and no other is there."""
        wait_for(
            f"{count} idle nodes",
            lambda: (states := self.nodes()) and len(states) == count and set(states.values()) == {"idle"},
            within=within,
        )

    def submit(self, script: str, *options: str) -> int:
        """The id of a new batch job."""
        return int(self.run("sbatch", "--parsable", "--output=/dev/null", *options, f"--wrap={script}").strip())

    def job_state(self, job: int) -> str:
        """The state of a job; empty when Slurm does not know it or cannot be asked."""
        text = self.run("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T", check=False)
        return text.strip()

    def wait_for_job(self, job: int, state: str, *, within: float = WITHIN) -> None:
        wait_for(f"job {job} to be {state}", lambda: self.job_state(job) == state or None, within=within)

    def conditions(self, kind: str, name: str = "") -> dict[str, dict[str, str]]:
        """The conditions of an object by type."""
        status = self.get(kind, name or self.name).get("status", {})
        return {each["type"]: each for each in status.get("conditions", [])}

    def config_is_live(self, since: int = 0) -> bool:
        """Whether slurmctld runs with what is wanted by now."""
        found = self.get("controllers.slinky.slurm.net", self.name)
        status = found.get("status", {})
        return (
            status.get("observedGeneration", 0) >= max(since, found["metadata"]["generation"])
            and bool(status.get("configHash"))
            and status.get("configHash") == status.get("wantedConfigHash")
        )

    def config(self, key: str) -> str:
        """A setting as slurmctld runs with it."""
        lines = self.run("scontrol", "show", "config", check=False).splitlines()
        pairs = (line.partition("=") for line in lines if "=" in line)
        return next((value.strip() for name, _, value in pairs if name.strip().lower() == key.lower()), "")
