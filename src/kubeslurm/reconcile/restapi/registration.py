"""Declares the controller of RestApis."""

from collections.abc import Iterable

from kubeslurm.api import names
from kubeslurm.api.kinds import CONFIGMAP, CONTROLLER, DEPLOYMENT, NODESET, POD, RESTAPI, SERVICE
from kubeslurm.api.resource import Resource
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.api.views import ConfigMap, Pod
from kubeslurm.control import references, rights
from kubeslurm.control.registration import Context, Registration, Watch, is_deletion, own_key
from kubeslurm.engine.key import Key
from kubeslurm.reconcile.restapi.reconciler import RestApiReconciler


def _of_controller(context: Context, controller: Resource) -> Iterable[Key]:
    return _of_cluster(context, Key(*controller.key))


def _of_nodeset(context: Context, nodeset: NodeSet) -> Iterable[Key]:
    """A RestApi that is being deleted waits for the last NodeSet."""
    return _of_cluster(context, Key(*nodeset.controller_key))


def _of_config(context: Context, configmap: ConfigMap) -> Iterable[Key]:
    for key in references.owner(CONTROLLER)(context, configmap):
        if configmap.name == names.config(key.name):
            yield from _of_cluster(context, key)


def _of_pod(_context: Context, pod: Pod) -> Iterable[Key]:
    return (Key.parse(owner) for owner in references.restapi_of(pod))


def _of_cluster(context: Context, controller: Key) -> Iterable[Key]:
    return [Key(*restapi.key) for restapi in references.restapis(context.caches, controller)]


REGISTRATION = Registration(
    name="restapi",
    kind=RESTAPI,
    make=RestApiReconciler,
    watches=(
        Watch(RESTAPI, own_key),
        Watch(CONTROLLER, _of_controller),
        Watch(CONFIGMAP, _of_config),
        Watch(SERVICE, references.owner(RESTAPI)),
        Watch(DEPLOYMENT, references.owner(RESTAPI)),
        Watch(POD, _of_pod),
        Watch(NODESET, _of_nodeset, when=is_deletion),
    ),
    indices=(references.NODESETS_BY_CONTROLLER, references.RESTAPIS_BY_CONTROLLER, references.PODS_BY_RESTAPI),
    of_unreadable=references.in_namespace(RESTAPI),
    rights=rights.apply(DEPLOYMENT, SERVICE),
)
