"""Declares the controller of Accountings."""

from collections.abc import Iterable

from kubeslurm.api import names
from kubeslurm.api.kinds import ACCOUNTING, CONFIGMAP, CONTROLLER, NODESET, POD, SECRET, SERVICE, STATEFULSET
from kubeslurm.api.resource import Resource
from kubeslurm.api.slinky.accounting import Accounting
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.api.views import ConfigMap, Pod, Secret
from kubeslurm.control import references, rights
from kubeslurm.control.registration import Context, Registration, Watch, is_deletion, own_key
from kubeslurm.engine.key import Key
from kubeslurm.reconcile.accounting.reconciler import AccountingReconciler


def _of_nodeset(context: Context, nodeset: NodeSet) -> Iterable[Key]:
    """An Accounting that is being deleted waits for the last NodeSet of its clusters."""
    controller = context.caches.store(CONTROLLER).get(Key(*nodeset.controller_key))
    if controller is not None and controller.spec.accountingRef is not None:
        yield Key(controller.namespace, controller.spec.accountingRef.name)


def _of_secret(context: Context, secret: Secret) -> Iterable[Key]:
    yield from references.owner(ACCOUNTING)(context, secret)
    for accounting in _in_namespace(context, secret):
        spec = accounting.spec
        password = spec.storageConfig.passwordKeyRef if spec.storageConfig else None
        if secret.name in {ref.name for ref in (spec.slurmKeyRef, spec.jwt_ref, password) if ref}:
            yield Key(*accounting.key)


def _of_configmap(context: Context, configmap: ConfigMap) -> Iterable[Key]:
    for accounting in _in_namespace(context, configmap):
        if accounting.spec.jwksKeyRef and accounting.spec.jwksKeyRef.name == configmap.name:
            yield Key(*accounting.key)


def _of_pod(_context: Context, pod: Pod) -> Iterable[Key]:
    labels = pod.metadata.labels
    if labels.get(names.LABEL_NAME) == names.SLURMDBD:
        yield Key(pod.namespace, labels.get(names.LABEL_INSTANCE, ""))


def _in_namespace(context: Context, obj: Resource) -> Iterable[Accounting]:
    return (each for each in context.caches.store(ACCOUNTING) if each.namespace == obj.namespace)


REGISTRATION = Registration(
    name="accounting",
    kind=ACCOUNTING,
    make=AccountingReconciler,
    watches=(
        Watch(ACCOUNTING, own_key),
        Watch(SECRET, _of_secret),
        Watch(CONFIGMAP, _of_configmap),
        Watch(SERVICE, references.owner(ACCOUNTING)),
        Watch(STATEFULSET, references.owner(ACCOUNTING)),
        Watch(POD, _of_pod),
        Watch(NODESET, _of_nodeset, when=is_deletion),
    ),
    reads=(CONTROLLER,),
    indices=(references.NODESETS_BY_CONTROLLER,),
    of_unreadable=references.in_namespace(ACCOUNTING),
    rights=(*rights.apply(SECRET, SERVICE, STATEFULSET), rights.on(POD, "get", subresource="log")),
)
