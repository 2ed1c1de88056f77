"""A running Slurm cluster as end-to-end tests see it: through kubectl and Slurm's own commands."""

import json
import subprocess
from typing import Any

from kubeslurm.local.errors import LocalError
from tests.support.kubernetes import Kubernetes
from tests.support.waiting import WITHIN, wait_for

PATIENCE = 300  # seconds for a command that may wait for nodes, and must not wait for ever
CONTROLLER = "controllers.slinky.slurm.net"
RESTAPI = "restapis.slinky.slurm.net"
NODESET = "nodesets.slinky.slurm.net"
KINDS = (CONTROLLER, RESTAPI, NODESET)


class Slurm:
    """One Slurm cluster of the test's Kubernetes cluster."""

    def __init__(self, cluster: Kubernetes, namespace: str = "slurm", name: str = "slurm") -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.name = name

    @property
    def controller(self) -> str:
        """The pod of slurmctld."""
        return f"{self.name}-controller-0"

    def kubectl(self, *args: str, stdin: str | None = None, check: bool = True) -> str:
        return self.cluster.kubectl(f"--namespace={self.namespace}", *args, stdin=stdin, check=check)

    def get(self, kind: str, name: str = "", *, selector: str = "") -> dict[str, Any]:
        """An object, or a list of them."""
        found = self.cluster.read(kind, self.namespace, name, selector)
        if found is None:
            raise LocalError(f"There is no {kind} {name} in {self.namespace}.")
        return found

    def items(self, *kinds: str, selector: str = "") -> list[dict[str, Any]]:
        """All objects of these kinds."""
        return [item for kind in kinds for item in self.get(kind, selector=selector)["items"]]

    def find(self, kind: str, name: str) -> dict[str, Any] | None:
        """An object, or None when it does not exist."""
        return self.cluster.read(kind, self.namespace, name)

    def patch(self, kind: str, name: str, change: dict[str, Any]) -> None:
        self.kubectl("patch", kind, name, "--type=merge", f"--patch={json.dumps(change)}")

    def run(self, *command: str, check: bool = True) -> str:
        """The output of a command in the slurmctld container."""
        return self.exec(self.controller, "slurmctld", "timeout", str(PATIENCE), *command, check=check)

    def exec(self, pod: str, container: str, *command: str, check: bool = True) -> str:
        """The output of a command in a container."""
        done = self.cluster.exec_in_pod(self.namespace, pod, container, command, deadline=PATIENCE + 30)
        if check and not done.succeeded:
            raise LocalError(f"{' '.join(command)} in {pod} failed: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def start(self, *command: str) -> "subprocess.Popen[str]":
        """A command in the slurmctld container that goes on while the test does something else."""
        inside = ("exec", self.controller, "--container=slurmctld", "--", "timeout", str(PATIENCE), *command)
        argv = ["timeout", str(PATIENCE + 30), *self.cluster.kubectl_command(f"--namespace={self.namespace}", *inside)]
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

    def hosts(self, *options: str) -> list[str]:
        """The nodes on which an srun has run: each task prints where it is."""
        return sorted(self.run("srun", *options, "hostname").split())

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
        found = self.get(CONTROLLER, self.name)
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
