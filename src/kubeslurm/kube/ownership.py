"""Reads managedFields, and makes the fields of former field managers ours."""

from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from typing import Any

from kubeslurm.api.meta import ManagedFields, OwnedMeta, Tree
from kubeslurm.api.resource import Resource


def entries_of(obj: Resource) -> tuple[ManagedFields, ...] | None:
    """The owners of the object's fields; None if its view does not have them."""
    return obj.metadata.managedFields if isinstance(obj.metadata, OwnedMeta) else None


def owned_by(obj: Resource, manager: str, subresource: str = "") -> Any:
    """A value that changes whenever anyone else changes a field that the manager applied; None if unknown."""
    entries = entries_of(obj)
    if entries is not None:
        return next((each for each in entries if _is_applied(each, manager, subresource)), None)
    return getattr(obj, "status", None) if subresource == "status" else None


def written_by(obj: Resource, managers: Collection[str], subresource: str = "") -> bool:
    """Whether one of the managers owns fields by plain updates, or may do so: not every view has the owners."""
    entries = entries_of(obj)
    if entries is None:
        return True
    return any(
        each.manager in managers and each.operation == "Update" and each.subresource == subresource for each in entries
    )


def migration(live: Tree, former: Collection[str], manager: str, *, subresource: str = "") -> list[Tree]:
    """A JSON patch that makes the fields of former managers ours; empty if they own none.

    Without it a field that a former manager set by plain update would have two owners, and leaving it out of our next
    apply would not remove it.
    """
    metadata = live["metadata"]
    entries: list[Tree] = metadata.get("managedFields", [])
    old = [
        each
        for each in entries
        if each.get("manager") in former
        and each.get("operation") == "Update"
        and each.get("subresource", "") == subresource
        and each.get("apiVersion") == live["apiVersion"]
    ]
    if not old:
        return []
    ours = [each for each in entries if _is_applied_tree(each, manager, subresource)]
    entry = _applied_entry([*ours, *old], manager, live["apiVersion"], subresource)
    rest = [each for each in entries if each not in old and each not in ours]
    return [
        {"op": "replace", "path": "/metadata/managedFields", "value": [*rest, entry]},
        # The server compares it with its own: a change since our read gives a conflict, and the next pass tries again.
        {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]},
    ]


def _applied_entry(sources: Iterable[Tree], manager: str, version: str, subresource: str) -> Tree:
    """One entry of ours with the fields of all the sources."""
    fields: Tree = {}
    for each in sources:
        fields = _union(fields, each.get("fieldsV1", {}))
    entry: Tree = {
        "manager": manager,
        "operation": "Apply",
        "apiVersion": version,
        "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return entry | ({"subresource": subresource} if subresource else {})


def _is_applied(entry: ManagedFields, manager: str, subresource: str) -> bool:
    return entry.manager == manager and entry.operation == "Apply" and entry.subresource == subresource


def _is_applied_tree(entry: Tree, manager: str, subresource: str) -> bool:
    return (
        entry.get("manager") == manager
        and entry.get("operation") == "Apply"
        and entry.get("subresource", "") == subresource
    )


def _union(left: Tree, right: Tree) -> Tree:
    """The union of two field sets; a leaf is an empty object."""
    return left | {name: _union(left[name], fields) if name in left else fields for name, fields in right.items()}
