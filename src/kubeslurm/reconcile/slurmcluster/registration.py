"""Declares the controller that keeps the connections to Slurm clusters; its keys are those of Controllers."""

from collections.abc import Iterable

from kubeslurm.api.kinds import CONFIGMAP, CONTROLLER, NODESET, POD, RESTAPI, SECRET, STATEFULSET
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.api.slinky.restapi import RestApi
from kubeslurm.api.views import Pod, Secret
from kubeslurm.control import references
from kubeslurm.control.registration import Context, Registration, Watch, own_key
from kubeslurm.engine.key import Key
from kubeslurm.reconcile.slurmcluster.reconciler import SlurmClusterReconciler


def _controller_key(_context: Context, obj: NodeSet | RestApi) -> Iterable[Key]:
    return (Key(*obj.controller_key),)


def _of_secret(context: Context, secret: Secret) -> Iterable[Key]:
    for controller in context.caches.store(CONTROLLER):
        ref = controller.spec.jwt_ref
        if ref is not None and (controller.namespace, ref.name) == (secret.namespace, secret.name):
            yield Key(*controller.key)


def _of_pod(context: Context, pod: Pod) -> Iterable[Key]:
    for owner in references.restapi_of(pod):
        restapi = context.caches.store(RESTAPI).get(Key.parse(owner))
        if restapi is not None:
            yield Key(*restapi.controller_key)


REGISTRATION = Registration(
    name="slurm",
    make=SlurmClusterReconciler,
    watches=(
        Watch(CONTROLLER, own_key),
        Watch(RESTAPI, _controller_key),
        Watch(NODESET, _controller_key),
        Watch(SECRET, _of_secret),
        Watch(POD, _of_pod),
        Watch(STATEFULSET, references.owner(CONTROLLER)),
    ),
    reads=(CONFIGMAP,),
    indices=(references.NODESETS_BY_CONTROLLER, references.RESTAPIS_BY_CONTROLLER, references.PODS_BY_RESTAPI),
    concurrency=2,
    concurrency_flag="slurmclient",
)
