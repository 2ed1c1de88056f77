"""Writes an object's status, and only when it has changed."""

from typing import Any

from kubeslurm.api.kinds import Kind
from kubeslurm.api.meta import Tree, Wire, tree
from kubeslurm.api.resource import Resource
from kubeslurm.kube.client import Kube


async def write(kube: Kube, kind: Kind[Any], obj: Resource, status: Tree) -> None:
    """Applies the status unless the object has it already."""
    current = obj.status if hasattr(obj, "status") else None
    if isinstance(current, Wire) and _set_fields(tree(current)) == _set_fields(status):
        return
    metadata = {"name": obj.name, "namespace": obj.namespace}
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "status": status}
    await kube.apply(body, status=True)


def _set_fields(status: Tree) -> Tree:
    return {field: value for field, value in status.items() if value}
