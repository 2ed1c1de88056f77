"""Holds the deletion of what NodeSets need for draining until they are gone."""

from collections.abc import Collection
from typing import Any

from kubeslurm.api import names
from kubeslurm.api.kinds import Kind
from kubeslurm.api.resource import Resource
from kubeslurm.kube.client import Kube


async def release(kube: Kube, kind: Kind[Any], obj: Resource, nodesets: Collection[object]) -> bool:
    """Removes the finalizer of a deleted object unless NodeSets still need it; the annotation forces it."""
    forced = obj.metadata.annotations.get(names.FORCE_DELETE) == "true"
    if nodesets and not forced:
        return False
    await kube.remove_finalizer(kind, obj, names.FINALIZER)
    return True
