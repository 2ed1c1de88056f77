"""Declares the controller that shows drains of Slurm nodes on Kubernetes nodes; it runs only on request."""

from collections.abc import Iterable

from kubeslurm.api import names, views
from kubeslurm.api.kinds import NODE, POD
from kubeslurm.control import rights, worker_pods
from kubeslurm.control.registration import Context, Registration, Watch, own_key
from kubeslurm.engine import controller as engine
from kubeslurm.engine.key import Key
from kubeslurm.reconcile.nodedrain.reconciler import NodeDrainReconciler
from kubeslurm.slurm.clusters import SlurmCluster
from kubeslurm.slurm.rest.models import Node


def _node_matters(_context: Context, old: views.Node | None, new: views.Node | None) -> bool:
    """Whether more than the heartbeat of a Node has changed."""
    return new is not None and (old is None or _decisive(old) != _decisive(new))


def _decisive(node: views.Node) -> tuple[object, ...]:
    kind = names.SLURM_DRAIN_CONDITION
    condition = next((each for each in node.status.conditions if each.type == kind), None)
    return (node.spec, node.metadata.annotations.get(names.SLURM_DRAIN), condition)


def _of_pod(_context: Context, pod: views.Pod) -> Iterable[Key]:
    return (Key("", pod.spec.nodeName),) if pod.spec.nodeName and worker_pods.nodeset_of(pod) else ()


def _watch_slurm(context: Context, controller: engine.Controller, cluster: SlurmCluster) -> None:
    name = f"{cluster.key.namespace}/{cluster.key.name}"

    def of_slurm_node(node: Node) -> Iterable[Key]:
        for pod in worker_pods.BY_SLURM_NODE.get(context.caches, f"{name}/{node.name}"):
            yield from _of_pod(context, pod)

    def enqueue_all() -> None:
        for pod in worker_pods.BY_CLUSTER.get(context.caches, name):
            for key in _of_pod(context, pod):
                controller.enqueue(key)

    controller.watch(cluster.snapshot.store, of_slurm_node)
    cluster.snapshot.on_health(enqueue_all)


REGISTRATION = Registration(
    name="nodedrain",
    make=NodeDrainReconciler,
    watches=(Watch(NODE, own_key, when=_node_matters), Watch(POD, _of_pod)),
    indices=(worker_pods.BY_CLUSTER, worker_pods.BY_SLURM_NODE, worker_pods.BY_KUBERNETES_NODE),
    watch_slurm=_watch_slurm,
    rights=(rights.on(NODE, "patch"), rights.on(NODE, "patch", subresource="status")),
    concurrency_flag="nodeset",
    enabled=lambda options: bool(options.slurm_drain_on_node),
)
