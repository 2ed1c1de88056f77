"""A small world in memory: an API server, kubelets and a slurmctld, as far as a NodeSet's reconcile can tell.

It knows the truth about jobs, so it can tell when an act of the operator would have killed one.
"""

import copy
from typing import Any

from kubeslurm.api import names
from kubeslurm.api.kinds import CONFIGMAP, CONTROLLER, NODE, NODESET, POD
from kubeslurm.api.meta import Tree
from kubeslurm.control.registration import Context, Options
from kubeslurm.engine.key import Key
from kubeslurm.kube.objects import key_of_tree
from kubeslurm.reconcile.nodeset.pass_interval import PassInterval
from kubeslurm.reconcile.nodeset.reconciler import NodeSetReconciler
from kubeslurm.reconcile.nodeset.registration import REGISTRATION
from kubeslurm.slurm.clusters import Clusters, SlurmCluster
from kubeslurm.slurm.jobs import JobStore
from kubeslurm.slurm.snapshot import Snapshot
from tests.support.clock import stamp
from tests.support.fake_kube import FakeKube
from tests.support.fake_slurm import FakeSlurm

CLUSTER = Key("slurm", "main")
SET = Key("slurm", "gpu")


class World:
    """Everything outside of the operator, and the operator's reconcile inside it."""

    def __init__(self, *, hosts: int = 4, **options: Any) -> None:
        self.options = options
        self.slurm = FakeSlurm()
        self.kube = FakeKube(self.slurm.has_processes)
        self.violations = self.kube.violations
        self.events = FakeEvents()
        self.caches = self.kube.caches
        self.clusters = Clusters()
        for number in range(hosts):
            self.kube.put(NODE, {"metadata": {"name": f"host-{number}"}, "spec": {}, "status": {}})
        self.kube.put(CONTROLLER, _controller())
        self.kube.put(CONFIGMAP, _second_owner())
        self.start_operator()

    def start_operator(self) -> None:
        """A new process: all that was only in memory is gone."""
        self.caches = self.kube.new_caches()
        self.clusters = Clusters()
        kube: Any = self.kube
        events: Any = self.events
        self.context = Context(kube, self.caches, self.clusters, events, Options(**self.options))
        REGISTRATION.add_indices(self.caches)
        self.reconciler = NodeSetReconciler(self.context)
        # Load on the machine must not change which passes run.
        self.reconciler.interval = PassInterval(cpu=lambda: 0.0)
        self.connect()

    def connect(self) -> None:
        """The RestApi appears: Slurm can be asked."""
        cluster = SlurmCluster(CLUSTER, ["http://restapi"], b"key")
        cluster.client = self.slurm  # type: ignore[assignment]
        cluster.snapshot = Snapshot(self.slurm)  # type: ignore[arg-type]
        cluster.jobs = JobStore(self.slurm)  # type: ignore[arg-type]
        self.clusters._clusters[CLUSTER] = cluster
        for listener in self.clusters._listeners:
            listener(cluster)

    def disconnect(self) -> None:
        """The RestApi object is deleted."""
        self.clusters._clusters.pop(CLUSTER, None)

    def nodeset(self, *, replicas: int, **spec: Any) -> None:
        """Creates or changes the NodeSet."""
        known = self.kube.trees.get((NODESET.plural, SET))
        tree: Tree = (
            copy.deepcopy(known) if known else {"metadata": {"name": "gpu", "namespace": "slurm", "generation": 0}}
        )
        tree["metadata"]["generation"] += 1
        image = {"image": "slurmd:1"}
        tree["spec"] = {"controllerRef": {"name": "main"}, "slurmd": image, "replicas": replicas} | spec
        self.kube.put(NODESET, tree)

    def delete_nodeset(self) -> None:
        tree = copy.deepcopy(self.kube.trees[NODESET.plural, SET])
        tree["metadata"]["deletionTimestamp"] = stamp()
        self.kube.put(NODESET, tree)

    def cordon(self, host: str, cordoned: bool = True) -> None:
        tree = copy.deepcopy(self.kube.trees[NODE.plural, Key("", host)])
        tree["spec"]["unschedulable"] = cordoned
        self.kube.put(NODE, tree)

    async def poll(self) -> None:
        """Slurm's nodes are listed, as the operator does all the time."""
        for cluster in self.clusters:
            await cluster.snapshot.poll()

    async def turn(self, times: int = 1) -> None:
        """One round: Slurm is polled, the operator makes a pass, kubelets and slurmd do their part."""
        for _ in range(times):
            await self.poll()
            if (NODESET.plural, SET) in self.kube.trees:
                await self.reconciler.reconcile(SET)
            self.kubelets()
            self.slurm.ping({pod["spec"]["hostname"] for pod in self.kube.pods()})

    def kubelets(self) -> None:
        """Schedules and starts pods, and ends those that are terminating."""
        taken = {pod["spec"].get("nodeName") for pod in self.kube.pods()}
        free = [key.name for plural, key in self.kube.trees if plural == NODE.plural and key.name not in taken]
        for pod in self.kube.pods():
            if pod["metadata"].get("deletionTimestamp"):
                self.slurm.stop(pod["spec"]["hostname"])
                self.kube.remove(POD, key_of_tree(pod))
            elif not pod["spec"].get("nodeName") and free:
                self.start(pod, free.pop(0))

    def start(self, pod: Tree, host: str, *, container: str = "containerd://1") -> None:
        """slurmd of a pod starts and registers."""
        tree = copy.deepcopy(pod)
        tree["spec"]["nodeName"] = host
        state = {"running": {"startedAt": stamp()}}
        status = {"name": "slurmd", "ready": True, "started": True, "containerID": container, "state": state}
        kept = [each for each in tree.get("status", {}).get("conditions", ()) if each["type"] != "Ready"]
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": stamp()}
        tree["status"] = {"phase": "Running", "conditions": [*kept, ready], "containerStatuses": [status]}
        self.kube.put(POD, tree)
        arguments = [each for container in tree["spec"].get("containers", ()) for each in container.get("args", ())]
        self.slurm.register(tree["spec"]["hostname"], extra=" ".join(arguments).partition(" --extra ")[2])

    def kill_pod(self, name: str) -> None:
        """A pod vanishes without a word, as when its machine is lost."""
        self.kube.remove(POD, Key("slurm", name))

    def restart_container(self, name: str) -> None:
        """slurmd's container is restarted under the same pod; its jobs lose their processes."""
        pod = self.kube.trees[POD.plural, Key("slurm", name)]
        self.slurm.lose(pod["spec"]["hostname"])
        self.start(pod, pod["spec"]["nodeName"], container="containerd://2")

    def pod_names(self) -> list[str]:
        return sorted(pod["metadata"]["name"] for pod in self.kube.pods())

    def status(self) -> Tree:
        found: Tree = self.kube.trees[NODESET.plural, SET].get("status", {})
        return found

    def message(self, condition: str) -> str:
        return self._of_condition(condition, "message")

    def reason(self, condition: str) -> str:
        return self._of_condition(condition, "reason")

    def _of_condition(self, condition: str, field: str) -> str:
        return str(next(each[field] for each in self.status()["conditions"] if each["type"] == condition))


class FakeEvents:
    """Keeps what was said."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []

    def normal(self, _obj: object, reason: str, message: str) -> None:
        self.said.append((reason, message))

    warning = normal


def _second_owner() -> Tree:
    """What the Controller's own pass makes."""
    return {"metadata": {"name": names.second_owner("main"), "namespace": "slurm"}}


def _controller() -> Tree:
    metadata = {"name": "main", "namespace": "slurm"}
    return {"metadata": metadata, "spec": {"slurmKeyRef": {"name": "auth", "key": "slurm.key"}}, "status": {}}
