"""A Slurm cluster as Slinky's operator, release 1.2.1, leaves it behind: its objects, its field manager, its pods.

The images are ours, because the contract between operator and images is the same.
"""

import json
from collections.abc import Mapping

import yaml

from tests.support.kubernetes import Kubernetes
from tests.support.predecessor.chart import WORKERS, Chart
from tests.support.predecessor.control_plane import ControlPlane
from tests.support.predecessor.parts import NAME, NODESET, Tree, selector
from tests.support.predecessor.workers import REVISION, Workers
from tests.support.slurm import Slurm

# The name under which that operator's binary writes.
MANAGER = "manager"


class Predecessor(Slurm):
    """The cluster, in a namespace of its own."""

    def __init__(self, cluster: Kubernetes, namespace: str, images: Mapping[str, str]) -> None:
        super().__init__(cluster, namespace, NAME)
        self.images = {name: f"localhost/{name}:{tag}" for name, tag in images.items()}

    def install(self) -> None:
        """What its chart and then its operator would have made."""
        self.cluster.kubectl("create", "namespace", self.namespace)
        place = self.namespace, self.images
        for tree in Chart(*place).objects():
            self._create(tree, "helm")
        owner, rest = self._owner("Controller", NAME), self._owner("RestApi", NAME)
        for tree in ControlPlane(*place).objects(owner, rest):
            self._create(tree, MANAGER)
        owner, shared = self._owner("NodeSet", NODESET), self._owner("NodeSet", NODESET, controls=False)
        for tree in Workers(*place).objects(owner, shared):
            self._create(tree, MANAGER)
        self._report()

    def stays(self) -> dict[str, tuple[str, list[int]]]:
        """Of each pod that is to stay: its uid, and how often each of its containers was restarted."""
        found = self.items("pods", selector="app.kubernetes.io/name in (slurmctld,slurmrestd,slurmd)")
        return {pod["metadata"]["name"]: (pod["metadata"]["uid"], restarts(pod)) for pod in found}

    def workloads(self) -> dict[str, tuple[Tree, str]]:
        """Of each workload: its whole spec, and the revision that Kubernetes made of it."""
        found = self.items("statefulsets", "deployments")
        return {each["metadata"]["name"]: (each["spec"], each["status"].get("updateRevision", "")) for each in found}

    def revisions(self) -> set[str]:
        """The revisions of the workers' template."""
        names = (each["metadata"]["name"] for each in self.items("controllerrevisions"))
        return {name for name in names if name.startswith(NODESET)}

    def _report(self) -> None:
        """The status that its operator left."""
        selected = ",".join(f"{key}={value}" for key, value in selector("slurmd", NODESET).items())
        counts = {"replicas": WORKERS, "updatedReplicas": WORKERS, "readyReplicas": WORKERS}
        status = json.dumps({"status": {"nodeSetHash": REVISION, "selector": selected} | counts})
        self.kubectl(
            "patch", "nodesets.slinky.slurm.net", NODESET, "--subresource=status", "--type=merge", f"--patch={status}",
            f"--field-manager={MANAGER}",
        )  # fmt: skip

    def _create(self, tree: Tree, manager: str) -> None:
        self.kubectl("create", f"--field-manager={manager}", "--filename=-", stdin=yaml.safe_dump(tree))

    def _owner(self, kind: str, name: str, *, controls: bool = True) -> Tree:
        uid = self.get(f"{kind.lower()}s.slinky.slurm.net", name)["metadata"]["uid"]
        owner = {"apiVersion": "slinky.slurm.net/v1beta1", "kind": kind, "name": name, "uid": uid}
        return {"ownerReferences": [owner | {"blockOwnerDeletion": True} | ({"controller": True} if controls else {})]}


def restarts(pod: Tree) -> list[int]:
    status = pod["status"]
    return [each["restartCount"] for each in (*status.get("initContainerStatuses", ()), *status["containerStatuses"])]
