"""What fails besides workers: the operator, slurmrestd and its answers, Node objects; and a new key for everyone."""

import base64
import json
import secrets
from collections.abc import Callable

from tests.chaos.stage import Stage
from tests.support.nodeset import node_of, operators
from tests.support.settled import nodes
from tests.support.slurm import CONTROLLER, RESTAPI
from tests.support.waiting import wait_for

SLURMRESTD = "app.kubernetes.io/name=slurmrestd"


class FaultActs:
    """Acts on everything but workers; none of them may cost a job."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.slurm = stage.slurm
        self.random = stage.random
        self.has_new_key = False

    def kill_operator(self) -> None:
        if operators(self.slurm.cluster):  # or the next one is only on its way
            self.stage.workers.kill_operator()

    def slurmrestd_away(self) -> None:
        self.slurm.patch(RESTAPI, "slurm", {"spec": {"replicas": 0}})

    def slurmrestd_back(self) -> None:
        self.slurm.patch(RESTAPI, "slurm", {"spec": {"replicas": 1}})

    def lose_answers(self, tell: Callable[[], None]) -> None:
        """Kills slurmrestd right after the operator got something to tell Slurm: it may be done, and nobody says so."""
        tell()
        for pod in self.slurm.items("pods", selector=SLURMRESTD):
            states = [each for each in pod["status"].get("containerStatuses", ()) if each["name"] == "slurmrestd"]
            if states and "running" in states[0]["state"]:
                container = states[0]["containerID"].partition("://")[2]
                argv = ["ctr", "--namespace=k8s.io", "task", "kill", "--signal=SIGKILL", container]
                self.slurm.cluster.exec_in_node(node_of(pod), argv)
                # Another pod starts at once; the same one would wait longer after each kill.
                self.slurm.kubectl("delete", "pod", pod["metadata"]["name"], "--wait=false", check=False)

    def lose_node_object(self) -> None:
        """The Node is deleted while its kubelet and its pods are well, and somebody puts it back."""
        cluster, host = self.slurm.cluster, self.random.choice(self.stage.hosts())
        self.stage.say(f"  {host}")
        tree = self.slurm.get("node", host)
        kept = {key: tree["metadata"].get(key, {}) for key in ("name", "labels", "annotations")}
        spec = {key: value for key, value in tree["spec"].items() if key != "taints"}
        again = {"apiVersion": "v1", "kind": "Node", "metadata": kept, "spec": spec}
        self.stage.kubectl("delete", "node", host, "--wait=true", "--timeout=60s")
        cluster.kubectl("create", "--filename=-", stdin=json.dumps(again))
        wait_for("all nodes", lambda: are_ready(self.stage), story=lambda: nodes(cluster))

    def change_key(self) -> None:
        """A new slurm.key, once: every daemon needs it, and no job may notice."""
        if self.has_new_key:
            return
        self.has_new_key = True
        ref = self.slurm.get(CONTROLLER, self.slurm.name)["spec"]["slurmKeyRef"]
        fresh = base64.b64encode(secrets.token_bytes(1024)).decode()
        self.slurm.patch("secret", ref["name"], {"data": {ref["key"]: fresh}})


def are_ready(stage: Stage) -> bool:
    """Whether all nodes are there and work; they may be cordoned, and new ones tainted for a moment."""
    return all("'Ready': 'True'" in line for line in nodes(stage.slurm.cluster).splitlines())
