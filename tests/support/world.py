"""A small world in memory: an API server, kubelets and a slurmctld, as far as a NodeSet's reconcile can tell.

It knows the truth about jobs, so it can tell when an act of the operator would have killed one.
"""

import copy
import time
from collections.abc import Callable
from typing import Any

from kubeslurm.api import names
from kubeslurm.api.kinds import CONFIGMAP, CONTROLLER, NODE, NODESET, POD
from kubeslurm.api.meta import Tree
from kubeslurm.control.registration import Context, Options
from kubeslurm.engine.key import Key
from kubeslurm.reconcile.nodeset.pass_interval import PassInterval
from kubeslurm.reconcile.nodeset.reconciler import NodeSetReconciler
from kubeslurm.reconcile.nodeset.registration import REGISTRATION
from kubeslurm.slurm.clusters import Clusters, SlurmCluster
from kubeslurm.slurm.jobs import JobStore
from kubeslurm.slurm.snapshot import Snapshot
from tests.support.clock import stamp
from tests.support.fake_kube import FakeKube
from tests.support.fake_slurm import FakeSlurm
from tests.support.machines import Machines

CLUSTER = Key("slurm", "main")
SET = Key("slurm", "gpu")


class World:
    """Everything outside of the operator, and the operator's reconcile inside it."""

    def __init__(
        self, *, hosts: int = 4, domain: str = "", clock: Callable[[], float] = time.monotonic, **options: Any
    ) -> None:
        self.options = options
        self.clock = clock
        self.slurm = FakeSlurm()
        self.kube = FakeKube()
        self.machines = Machines(self.kube, self.slurm, domain)
        self.violations = self.kube.violations
        self.events = FakeEvents()
        self.caches = self.kube.caches
        self.clusters = Clusters()
        for number in range(hosts):
            self.machines.add(number)
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
        self.reconciler.observer.sightings._clock = self.clock
        self.reconciler.act._remove._gate._absent._clock = self.clock
        self.connect()

    def connect(self) -> None:
        """The RestApi appears: Slurm can be asked."""
        cluster = SlurmCluster(CLUSTER, ["http://restapi"], b"key")
        cluster.client = self.slurm  # type: ignore[assignment]
        cluster.snapshot = Snapshot(self.slurm, clock=self.clock)  # type: ignore[arg-type]
        cluster.jobs = JobStore(self.slurm, clock=self.clock)  # type: ignore[arg-type]
        self.clusters._clusters[CLUSTER] = cluster
        for listener in self.clusters._listeners:
            listener(cluster)

    def disconnect(self) -> None:
        """The RestApi object is deleted."""
        self.clusters._clusters.pop(CLUSTER, None)

    def nodeset(self, *, replicas: int, name: str = SET.name, **spec: Any) -> None:
        """Creates or changes a NodeSet."""
        known = self.kube.trees.get((NODESET.plural, Key("slurm", name)))
        tree: Tree = (
            copy.deepcopy(known) if known else {"metadata": {"name": name, "namespace": "slurm", "generation": 0}}
        )
        tree["metadata"]["generation"] += 1
        image = {"image": "slurmd:1"}
        tree["spec"] = {"controllerRef": {"name": "main"}, "slurmd": image, "replicas": replicas} | spec
        self.kube.put(NODESET, tree)

    def delete_nodeset(self, *finalizers: str) -> None:
        """With the finalizer of a cascade, garbage collection has its say too."""
        tree = copy.deepcopy(self.kube.trees[NODESET.plural, SET])
        tree["metadata"]["deletionTimestamp"] = stamp()
        tree["metadata"]["finalizers"] = [*tree["metadata"].get("finalizers", ()), *finalizers]
        self.kube.put(NODESET, tree)

    def cordon(self, host: str, cordoned: bool = True) -> None:
        self._change_node(host, {"spec": {"unschedulable": cordoned}})

    def annotate_node(self, host: str, annotations: dict[str, str]) -> None:
        self._change_node(host, {"metadata": {"annotations": annotations}})

    def _change_node(self, host: str, change: Tree) -> None:
        """Changes a Kubernetes node, if there is one."""
        if (known := self.kube.trees.get((NODE.plural, Key("", host)))) is None:
            return
        tree = copy.deepcopy(known)
        for part, fields in change.items():
            tree[part] |= fields
        self.kube.put(NODE, tree)

    async def poll(self) -> None:
        """Slurm's nodes are listed, as the operator does all the time."""
        for cluster in self.clusters:
            await cluster.snapshot.poll()

    async def turn(self, times: int = 1) -> None:
        """One round: Slurm is polled, the operator makes a pass, kubelets and slurmd do their part."""
        for _ in range(times):
            await self.poll()
            for key in [key for plural, key in self.kube.trees if plural == NODESET.plural]:
                await self.reconciler.reconcile(key)
            self.machines.work()
            self.slurm.ping(self.machines.alive())

    def kill_pod(self, name: str) -> None:
        """A pod vanishes without a word, as when its machine is lost."""
        self.kube.remove(POD, Key("slurm", name))

    def restart_container(self, name: str) -> None:
        """slurmd's container is restarted under the same pod; its jobs lose their processes."""
        pod = self.kube.trees[POD.plural, Key("slurm", name)]
        self.slurm.lose(self.machines.registered[pod["metadata"]["uid"]])
        self.machines.start(pod, pod["spec"]["nodeName"], container="containerd://2")

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
