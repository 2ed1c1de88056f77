"""Declares the controller of NodeSets."""

from collections.abc import Iterable

from kubeslurm.api import views
from kubeslurm.api.kinds import (
    CONFIGMAP,
    CONTROLLER,
    CONTROLLER_REVISION,
    NODE,
    NODESET,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_DISRUPTION_BUDGET,
    SECRET,
    SERVICE,
    STATEFULSET,
)
from kubeslurm.api.resource import Resource
from kubeslurm.control import key_change, references, rights, worker_pods
from kubeslurm.control.registration import Context, Registration, Watch, own_key
from kubeslurm.decide.nodeset.slurm.records import without_comment
from kubeslurm.engine import controller as engine
from kubeslurm.engine.key import Key
from kubeslurm.reconcile.nodeset.reconciler import NodeSetReconciler
from kubeslurm.reconcile.nodeset.slurm.records import pod_owner
from kubeslurm.slurm.clusters import SlurmCluster
from kubeslurm.slurm.rest.models import Node


def _of_pod(_context: Context, pod: views.Pod) -> Iterable[Key]:
    return (Key.parse(owner) for owner in worker_pods.nodeset_of(pod))


def _of_node(context: Context, node: views.Node) -> Iterable[Key]:
    for pod in worker_pods.BY_KUBERNETES_NODE.get(context.caches, node.name):
        yield from _of_pod(context, pod)
    for nodeset in context.caches.store(NODESET):
        if nodeset.spec.scalingMode == "DaemonSet":
            yield Key(*nodeset.key)


def _node_matters(context: Context, old: views.Node | None, new: views.Node | None) -> bool:
    """Whether more than the heartbeat of a Node has changed."""
    return old is None or new is None or _decisive(context, old) != _decisive(context, new)


def _decisive(context: Context, node: views.Node) -> tuple[object, ...]:
    types = context.options.propagated_node_conditions | context.options.drain_on_node_conditions
    conditions = tuple(each for each in node.status.conditions if each.type in types)
    return (node.spec, node.metadata.labels, node.metadata.annotations, node.deleting, conditions)


def _of_controller(context: Context, controller: Resource) -> Iterable[Key]:
    return (Key(*each.key) for each in references.nodesets(context.caches, Key(*controller.key)))


def _of_statefulset(context: Context, statefulset: views.StatefulSet) -> Iterable[Key]:
    """slurmctld may have been given another key."""
    for controller in references.owner(CONTROLLER)(context, statefulset):
        yield from (Key(*each.key) for each in references.nodesets(context.caches, controller))


def _key_matters(_context: Context, old: views.StatefulSet | None, new: views.StatefulSet | None) -> bool:
    return key_change.given_hash(old) != key_change.given_hash(new)


def _of_secret(context: Context, secret: views.Secret) -> Iterable[Key]:
    for nodeset in context.caches.store(NODESET):
        ssh = nodeset.spec.ssh
        controller = context.caches.store(CONTROLLER).get(Key(*nodeset.controller_key))
        used = {controller.spec.slurmKeyRef} if controller is not None else set()
        if ssh and ssh.enabled:
            used.add(ssh.sssdConfRef)
        if secret.namespace == nodeset.namespace and secret.name in {ref.name for ref in used if ref}:
            yield Key(*nodeset.key)


def _watch_slurm(context: Context, controller: engine.Controller, cluster: SlurmCluster) -> None:
    """A changed Slurm node concerns the NodeSet of its pod; a lost or found Slurm concerns all of them."""

    def of_slurm_node(node: Node) -> Iterable[Key]:
        found = {Key.parse(owner) for owner in pod_owner(node)}
        name = f"{cluster.key.namespace}/{cluster.key.name}/{node.name}"
        for pod in worker_pods.BY_SLURM_NODE.get(context.caches, name):
            found.update(_of_pod(context, pod))
        if not node.comment:
            nodesets = references.nodesets(context.caches, cluster.key)
            found.update(Key(*each.key) for each in nodesets if without_comment(each, (node,)))
        return found

    def enqueue_all() -> None:
        for nodeset in references.nodesets(context.caches, cluster.key):
            controller.enqueue(Key(*nodeset.key))

    controller.watch(cluster.snapshot.store, of_slurm_node)
    cluster.snapshot.on_health(enqueue_all)


REGISTRATION = Registration(
    name="nodeset",
    kind=NODESET,
    make=NodeSetReconciler,
    watches=(
        Watch(NODESET, own_key),
        Watch(POD, _of_pod),
        Watch(NODE, _of_node, when=_node_matters),
        Watch(CONTROLLER, _of_controller),
        Watch(SECRET, _of_secret),
        Watch(STATEFULSET, _of_statefulset, when=_key_matters),
    ),
    reads=(CONFIGMAP, CONTROLLER_REVISION, POD_DISRUPTION_BUDGET, SERVICE),
    indices=(
        references.NODESETS_BY_CONTROLLER,
        worker_pods.BY_NODESET,
        worker_pods.BY_CLUSTER,
        worker_pods.BY_SLURM_NODE,
        worker_pods.BY_KUBERNETES_NODE,
        worker_pods.REVISIONS_BY_NODESET,
    ),
    watch_slurm=_watch_slurm,
    rights=(
        *rights.apply(CONFIGMAP, POD_DISRUPTION_BUDGET, SERVICE),
        rights.on(POD, "get", "create", "patch", "delete"),
        rights.on(POD, "patch", subresource="status"),
        rights.on(CONTROLLER_REVISION, "get", "create", "patch", "delete"),
        rights.on(PERSISTENT_VOLUME_CLAIM, "get", "create", "patch"),
    ),
    # Every change of a pod concerns its NodeSet as a whole: a pass for each would walk all pods each time.
    window=0.3,
)
