"""Looks up what objects refer to: keys in Secrets, files in ConfigMaps, objects of one cluster."""

import base64
import binascii
from collections.abc import Callable, Iterable
from typing import Any

from kubeslurm.api import names
from kubeslurm.api.kinds import ACCOUNTING, CONFIGMAP, CONTROLLER, NODESET, POD, RESTAPI, SECRET, Kind
from kubeslurm.api.resource import Resource
from kubeslurm.api.slinky.accounting import Accounting
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.fragments import SecretKeySelector
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.api.slinky.restapi import RestApi
from kubeslurm.api.views import ConfigMap, Pod, Secret
from kubeslurm.control.registration import Context, Index
from kubeslurm.decide.missing import Missing, Undecoded
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.unreadable import Unreadable


def _controller(obj: NodeSet | RestApi) -> tuple[str, ...]:
    return (str(Key(*obj.controller_key)),)


def restapi_of(pod: Pod) -> tuple[str, ...]:
    """The RestApi that a pod belongs to, by its labels: the ReplicaSet between them is not watched."""
    labels = pod.metadata.labels
    if labels.get(names.LABEL_NAME) != names.SLURMRESTD:
        return ()
    return (str(Key(pod.namespace, labels.get(names.LABEL_INSTANCE, ""))),)


NODESETS_BY_CONTROLLER = Index(NODESET, "controller", _controller)
RESTAPIS_BY_CONTROLLER = Index(RESTAPI, "controller", _controller)
PODS_BY_RESTAPI = Index(POD, "restapi", restapi_of)


def owner(kind: Kind[Any]) -> Callable[[Context, Resource], Iterable[Key]]:
    """Maps a child to the object of this kind that manages it."""

    def keys(_context: Context, child: Resource) -> Iterable[Key]:
        reference = child.metadata.controller
        if reference is not None and (reference.kind, reference.apiVersion) == (kind.kind, kind.api_version):
            yield Key(child.namespace, reference.name)

    return keys


def in_namespace(kind: Kind[Any]) -> Callable[[Context, Unreadable], Iterable[Key]]:
    """Maps an object that cannot be decoded to all objects of this kind beside it."""

    def keys(context: Context, unreadable: Unreadable) -> Iterable[Key]:
        return (Key(*obj.key) for obj in context.caches.store(kind) if obj.namespace == unreadable.key.namespace)

    return keys


def nodesets(caches: Caches, controller: Key) -> tuple[NodeSet, ...]:
    """The NodeSets of one Controller, those being deleted included: their jobs still need the cluster."""
    return tuple(NODESETS_BY_CONTROLLER.get(caches, controller))


def unreadable_nodesets(caches: Caches, controller: Key) -> tuple[Unreadable, ...]:
    """NodeSets that cannot be decoded and belong to the Controller, or may do so."""
    return tuple(
        each
        for each in caches.unreadables
        if each.kind == NODESET.kind
        and each.key.namespace == controller.namespace
        and each.controller in ("", controller.name)
        and each.key not in caches.store(NODESET)
    )


def undecoded(caches: Caches, controller: Controller, configmaps: Iterable[str]) -> Iterable[Undecoded]:
    """All that cannot be decoded of what the configuration of a cluster is made from."""
    spec = controller.spec
    names_of = {
        CONTROLLER.kind: {controller.name},
        ACCOUNTING.kind: {spec.accountingRef.name} if spec.accountingRef else set(),
        CONFIGMAP.kind: set(configmaps),
        SECRET.kind: {ref.name for ref in (spec.slurmKeyRef, spec.jwt_ref) if ref},
    }
    for each in caches.unreadables:
        of_it = each.controller in ("", controller.name) if each.kind == NODESET.kind else False
        if each.key.namespace == controller.namespace and (of_it or each.key.name in names_of.get(each.kind, ())):
            yield Undecoded(each.kind, each.key.namespace, each.key.name, each.error)


def holders(caches: Caches, controller: Key) -> tuple[NodeSet | Unreadable, ...]:
    """The NodeSets that hold the deletion of what they need for draining."""
    return (*nodesets(caches, controller), *unreadable_nodesets(caches, controller))


def restapis(caches: Caches, controller: Key) -> tuple[RestApi, ...]:
    """The RestApis of one Controller."""
    return tuple(RESTAPIS_BY_CONTROLLER.get(caches, controller))


def accounting(caches: Caches, controller: Controller) -> Accounting | None:
    """The Accounting that a Controller refers to."""
    ref = controller.spec.accountingRef
    return caches.store(ACCOUNTING).get(Key(controller.namespace, ref.name)) if ref and ref.name else None


def secret(caches: Caches, namespace: str, ref: SecretKeySelector | None) -> Secret | None:
    """The Secret that a reference points at."""
    return caches.store(SECRET).get(Key(namespace, ref.name)) if ref else None


def configmap(caches: Caches, namespace: str, name: str) -> ConfigMap | None:
    return caches.store(CONFIGMAP).get(Key(namespace, name))


def key_bytes(found: Secret | None, ref: SecretKeySelector | None) -> bytes | None:
    """The key that a reference points at, or None when the Secret lacks it."""
    if found is None or ref is None or ref.key not in found.data:
        return None
    return _decoded(found.data[ref.key])


def data_of(found: Secret | None) -> dict[str, bytes]:
    """All values of a Secret as bytes."""
    return {key: _decoded(value) for key, value in found.data.items()} if found else {}


def missing_key(caches: Caches, namespace: str, ref: SecretKeySelector | None, field: str) -> tuple[Missing, ...]:
    """Names the key that a field of the spec refers to when it does not exist."""
    if key_bytes(secret(caches, namespace, ref), ref) is not None:
        return ()
    return (key_reference(namespace, ref, field),)


def key_reference(namespace: str, ref: SecretKeySelector | None, field: str) -> Missing:
    """The key that a field of the spec refers to, as one that is missing."""
    return Missing("Secret", namespace, ref.name if ref else "", field, ref.key if ref else "")


def missing_configmaps(caches: Caches, namespace: str, referenced: Iterable[str]) -> tuple[Missing, ...]:
    """Names the ConfigMaps that do not exist."""
    return tuple(
        Missing("ConfigMap", namespace, name) for name in referenced if configmap(caches, namespace, name) is None
    )


def _decoded(value: str) -> bytes:
    try:
        return base64.b64decode(value)
    except binascii.Error:
        return b""
