"""Shows on Kubernetes nodes that admins or health checks drained the Slurm nodes there; only on request."""

from datetime import UTC, datetime

import msgspec

from kubeslurm.api import names, views
from kubeslurm.api.kinds import NODE
from kubeslurm.control import worker_pods
from kubeslurm.control.registration import Context
from kubeslurm.decide import node_drain
from kubeslurm.decide.node_drain import Mode
from kubeslurm.decide.nodeset.worker import Worker
from kubeslurm.engine.controller import Requeue, Retry
from kubeslurm.engine.key import Key
from kubeslurm.kube.errors import Conflict, Invalid, NotFound
from kubeslurm.slurm.rest.models import Node


class NodeDrainReconciler:
    """One pass over one Kubernetes node: observe its Slurm nodes, decide, patch."""

    def __init__(self, context: Context) -> None:
        self.kube = context.kube
        self.caches = context.caches
        self.clusters = context.clusters
        self.mode = msgspec.convert(context.options.slurm_drain_on_node, type=Mode)

    async def reconcile(self, key: Key) -> Requeue | None:
        host = self.caches.store(NODE).get(key)
        if host is None or host.deleting:
            return None
        nodes = self.slurm_nodes(host)
        if nodes is None:
            return None  # not known: the node stays as it is, and there is another pass when Slurm answers again
        change = node_drain.change(host, node_drain.drain_message(nodes), self.mode, datetime.now(UTC))
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
        for pod in worker_pods.BY_KUBERNETES_NODE.get(self.caches, host.name):
            slurm = self.clusters.of(Key(pod.namespace, pod.metadata.labels.get(names.LABEL_CLUSTER, "")))
            if slurm is None or not slurm.snapshot.fresh():
                return None
            found.append(slurm.snapshot.store.get(Worker(pod=pod).slurm_name))
        return found
