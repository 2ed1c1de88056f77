"""Declares the controller of LoginSets."""

from collections.abc import Iterable

from kubeslurm.api.kinds import CONFIGMAP, CONTROLLER, DEPLOYMENT, LOGINSET, POD, SECRET, SERVICE, STATEFULSET
from kubeslurm.api.resource import Resource
from kubeslurm.api.slinky.loginset import LoginSet
from kubeslurm.api.views import Pod, Secret
from kubeslurm.control import references, rights
from kubeslurm.control.registration import Context, Index, Registration, Watch, own_key
from kubeslurm.engine.key import Key
from kubeslurm.reconcile.loginset.reconciler import PODS_BY_LOGINSET, LoginSetReconciler, loginset_of

LOGINSETS_BY_CONTROLLER = Index(LOGINSET, "controller", lambda loginset: (str(Key(*loginset.controller_key)),))


def _of_controller(context: Context, controller: Resource) -> Iterable[Key]:
    return [Key(*each.key) for each in LOGINSETS_BY_CONTROLLER.get(context.caches, Key(*controller.key))]


def _of_secret(context: Context, secret: Secret) -> Iterable[Key]:
    yield from references.owner(LOGINSET)(context, secret)
    for loginset in context.caches.store(LOGINSET):
        if loginset.namespace == secret.namespace and secret.name in _secrets(context, loginset):
            yield Key(*loginset.key)


def _secrets(context: Context, loginset: LoginSet) -> set[str]:
    controller = context.caches.store(CONTROLLER).get(Key(*loginset.controller_key))
    key = controller.spec.slurmKeyRef if controller else None
    return {loginset.spec.sssdConfRef.name} | ({key.name} if key else set())


def _of_pod(_context: Context, pod: Pod) -> Iterable[Key]:
    return map(Key.parse, loginset_of(pod))


REGISTRATION = Registration(
    name="loginset",
    kind=LOGINSET,
    make=LoginSetReconciler,
    watches=(
        Watch(LOGINSET, own_key),
        Watch(CONTROLLER, _of_controller),
        Watch(SECRET, _of_secret),
        Watch(CONFIGMAP, references.owner(LOGINSET)),
        Watch(SERVICE, references.owner(LOGINSET)),
        Watch(DEPLOYMENT, references.owner(LOGINSET)),
        Watch(POD, _of_pod),
    ),
    reads=(STATEFULSET,),
    indices=(LOGINSETS_BY_CONTROLLER, PODS_BY_LOGINSET),
    rights=(
        *rights.apply(CONFIGMAP, DEPLOYMENT, SECRET, SERVICE),
        rights.on(POD, "get", subresource="log"),
    ),
)
