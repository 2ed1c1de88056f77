"""Declares the controller of Controllers."""

from collections.abc import Iterable

from kubeslurm.api import names
from kubeslurm.api.kinds import (
    ACCOUNTING,
    CONFIGMAP,
    CONTROLLER,
    NODE,
    NODESET,
    POD,
    RESTAPI,
    SECRET,
    SERVICE,
    SERVICE_MONITOR,
    STATEFULSET,
)
from kubeslurm.api.resource import Resource
from kubeslurm.api.slinky.accounting import Accounting
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.api.views import ConfigMap, Node, Pod, Secret
from kubeslurm.build.controller.config import referenced
from kubeslurm.control import references, rights, worker_pods
from kubeslurm.control.registration import Context, Registration, Watch, own_key
from kubeslurm.engine import controller as engine
from kubeslurm.engine.key import Key
from kubeslurm.reconcile.controller.reconciler import ControllerReconciler
from kubeslurm.reconcile.controller.trials import CONFIGMAPS_BY_TRIAL, PODS_BY_TRIAL
from kubeslurm.slurm.clusters import SlurmCluster


def _of_nodeset(_context: Context, nodeset: NodeSet) -> Iterable[Key]:
    return (Key(*nodeset.controller_key),)


def _of_node(context: Context, node: Node) -> Iterable[Key]:
    if node.ready and not node.spec.taints and Key("", node.name) in context.caches.store(NODE):
        return  # a heartbeat of a healthy node
    for controller in context.caches.store(CONTROLLER):
        pod = context.caches.store(POD).get(Key(controller.namespace, names.controller_pod(controller.name)))
        if pod is not None and pod.spec.nodeName == node.name:
            yield Key(*controller.key)


def _of_accounting(context: Context, accounting: Accounting) -> Iterable[Key]:
    for controller in _in_namespace(context, accounting):
        if controller.spec.accountingRef and controller.spec.accountingRef.name == accounting.name:
            yield Key(*controller.key)


def _of_secret(context: Context, secret: Secret) -> Iterable[Key]:
    for controller in _in_namespace(context, secret):
        refs = (controller.spec.slurmKeyRef, controller.spec.jwt_ref)
        if secret.name in {ref.name for ref in refs if ref}:
            yield Key(*controller.key)


def _of_configmap(context: Context, configmap: ConfigMap) -> Iterable[Key]:
    yield from references.owner(CONTROLLER)(context, configmap)
    for controller in _in_namespace(context, configmap):
        if configmap.name in (*referenced(controller), names.second_owner(controller.name)):
            yield Key(*controller.key)


def _of_pod(_context: Context, pod: Pod) -> Iterable[Key]:
    labels = pod.metadata.labels
    if labels.get(names.LABEL_NAME) == names.SLURMCTLD:
        yield Key(pod.namespace, labels.get(names.LABEL_INSTANCE, ""))
    if trial := labels.get(names.LABEL_TRIAL):
        yield Key(pod.namespace, trial)


def _in_namespace(context: Context, obj: Resource) -> Iterable[Controller]:
    return (each for each in context.caches.store(CONTROLLER) if each.namespace == obj.namespace)


def _watch_slurm(_context: Context, controller: engine.Controller, cluster: SlurmCluster) -> None:
    """Looks again when Slurm comes or goes, and when a node does."""
    cluster.snapshot.on_health(lambda: controller.enqueue(cluster.key))

    def on_node(_name: str, old: object | None, new: object | None) -> None:
        if old is None or new is None:
            controller.enqueue_after(cluster.key, 1.0)

    cluster.snapshot.store.subscribe(on_node)


REGISTRATION = Registration(
    name="controller",
    kind=CONTROLLER,
    make=ControllerReconciler,
    watches=(
        Watch(CONTROLLER, own_key),
        Watch(NODESET, _of_nodeset),
        Watch(ACCOUNTING, _of_accounting),
        Watch(SECRET, _of_secret),
        Watch(CONFIGMAP, _of_configmap),
        Watch(POD, _of_pod),
        Watch(NODE, _of_node),
        Watch(SERVICE, references.owner(CONTROLLER)),
        Watch(STATEFULSET, references.owner(CONTROLLER)),
    ),
    reads=(RESTAPI,),
    indices=(
        references.NODESETS_BY_CONTROLLER,
        references.RESTAPIS_BY_CONTROLLER,
        worker_pods.BY_SLURM_NODE,
        PODS_BY_TRIAL,
        CONFIGMAPS_BY_TRIAL,
        worker_pods.BY_CLUSTER,
    ),
    watch_slurm=_watch_slurm,
    of_unreadable=references.in_namespace(CONTROLLER),
    rights=(
        *rights.apply(CONFIGMAP, SECRET, SERVICE, STATEFULSET),
        rights.on(CONFIGMAP, "delete"),
        rights.on(NODE, "get"),
        rights.on(POD, "create", "patch", "delete"),
        rights.on(SERVICE_MONITOR, "get", "create", "patch", "delete"),
    ),
)
