"""Holds the deletion of what NodeSets need for draining until they are gone."""

from collections.abc import Collection
from typing import Any

from kubeslurm.api import names
from kubeslurm.api.kinds import Kind
from kubeslurm.api.resource import Resource
from kubeslurm.kube.client import Kube

ORPHAN = "orphan"  # the finalizer behind --cascade=orphan; garbage collection removes it when it has done its part


async def release(kube: Kube, kind: Kind[Any], obj: Resource, nodesets: Collection[object]) -> bool:
    """Removes the finalizer of a deleted object unless NodeSets still need it; whether it did."""
    if not may_go(obj, nodesets):
        return False
    await kube.remove_finalizer(kind, obj, names.FINALIZER)
    return True


def may_go(obj: Resource, nodesets: Collection[object]) -> bool:
    """Whether no NodeSet needs the object any more; the annotation forces it."""
    return not nodesets or obj.metadata.annotations.get(names.FORCE_DELETE) == "true"


def is_orphaning(obj: Resource) -> bool:
    """Whether garbage collection has still to see to it that the children are kept."""
    return obj.metadata.deleting and ORPHAN in obj.metadata.finalizers
