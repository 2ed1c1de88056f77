"""Shows on Kubernetes nodes what admins and health checks decided about the Slurm nodes there; only on request."""

from collections.abc import Iterable
from datetime import UTC, datetime

from kubeslurm.api import names, views
from kubeslurm.api.kinds import NODE, POD
from kubeslurm.decide import node_drain
from kubeslurm.decide.node_drain import Mode
from kubeslurm.decide.nodeset.facts import Worker
from kubeslurm.engine.controller import Controller as Workers
from kubeslurm.engine.controller import Requeue, Retry
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.errors import Conflict, Invalid, NotFound
from kubeslurm.kube.events import Events
from kubeslurm.reconcile.nodeset import observe
from kubeslurm.slurm.clusters import Clusters, SlurmCluster
from kubeslurm.slurm.rest.models import Node


class NodeMarker:
    """One pass over one Kubernetes node. It reads the indices that the NodeSets' observer keeps."""

    def __init__(self, kube: Kube, caches: Caches, clusters: Clusters, _events: Events, *, mode: Mode) -> None:
        self.kube = kube
        self.caches = caches
        self.clusters = clusters
        self.mode = mode

    async def reconcile(self, key: Key) -> Requeue | None:
        host = self.caches.store(NODE).get(key)
        if host is None or host.deleting:
            return None
        nodes = self.slurm_nodes(host)
        if nodes is None:
            return None  # nobody knows: what the node shows stays, and Slurm's return brings another pass
        change = node_drain.change(host, node_drain.told(nodes), self.mode, datetime.now(UTC))
        try:
            if change.operations:
                await self.kube.patch(NODE, key, list(change.operations), type="json")
            if change.conditions:
                tree = {"status": {"conditions": list(change.conditions)}}
                await self.kube.patch(NODE, key, tree, type="strategic", subresource="status")
        except NotFound:
            return None
        except (Conflict, Invalid) as error:
            raise Retry(f"node {key.name} changed meanwhile: {error}") from error
        return None

    def slurm_nodes(self, host: views.Node) -> list[Node | None] | None:
        """The Slurm nodes on a Kubernetes node; None while one of their clusters cannot be asked."""
        found: list[Node | None] = []
        for pod in self.caches.store(POD).by(observe.BY_NODE, host.name):
            slurm = self.clusters.of(Key(pod.namespace, pod.metadata.labels.get(names.LABEL_CLUSTER, "")))
            if slurm is None or not slurm.snapshot.fresh():
                return None
            found.append(slurm.snapshot.store.get(Worker(pod=pod).slurm_name))
        return found

    def watch(self, workers: Workers) -> None:
        """Says which changes concern which Kubernetes node."""
        self.caches.store(NODE).subscribe(lambda key, old, new: self._on_node(workers, key, old, new))
        workers.watch(self.caches.store(POD), _host_of)
        self.clusters.on_start(lambda cluster: self._follow(workers, cluster))

    def _on_node(self, workers: Workers, key: Key, old: views.Node | None, new: views.Node | None) -> None:
        """A heartbeat is no news."""
        if new is not None and (old is None or _shown(old) != _shown(new)):
            workers.enqueue(key)

    def _follow(self, workers: Workers, cluster: SlurmCluster) -> None:
        name = f"{cluster.key.namespace}/{cluster.key.name}"

        def of_slurm_node(node: Node) -> Iterable[Key]:
            for pod in self.caches.store(POD).by(observe.BY_SLURM_NAME, f"{name}/{node.name}"):
                yield from _host_of(pod)

        def everybody() -> None:
            for pod in self.caches.store(POD).by(observe.BY_CLUSTER, name):
                for key in _host_of(pod):
                    workers.enqueue(key)

        workers.watch(cluster.snapshot.store, of_slurm_node)
        cluster.snapshot.on_health(everybody)


def _host_of(pod: views.Pod) -> tuple[Key, ...]:
    return (Key("", pod.spec.nodeName),) if pod.spec.nodeName and observe.owner(pod) else ()


def _shown(node: views.Node) -> tuple[object, ...]:
    kind = names.SLURM_DRAIN_CONDITION
    condition = next((each for each in node.status.conditions if each.type == kind), None)
    return (node.spec, node.metadata.annotations.get(names.SLURM_DRAIN), condition)
