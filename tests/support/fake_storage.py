"""The storage of an API server, in memory: versions, patches, field owners, finalizers, a history."""

import asyncio
import copy
from typing import Any, NamedTuple

Tree = dict[str, Any]


class Address(NamedTuple):
    """The path of an object; the name is empty for a collection."""

    plural: str
    namespace: str
    name: str
    subresource: str = ""

    def is_in(self, collection: "Address") -> bool:
        return self.plural == collection.plural and collection.namespace in ("", self.namespace)


class Change(NamedTuple):
    version: int
    type: str
    address: Address
    tree: Tree


class Refusal(Exception):  # noqa: N818 (an answer, not a fault)
    """A request is refused, with the status and the reason of an API server."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Storage:
    """Objects by their address, and the history of their changes."""

    def __init__(self) -> None:
        self.version = 100
        self.objects: dict[Address, Tree] = {}
        self.history: list[Change] = []
        self.compacted = 0
        self.changed = asyncio.Condition()
        self._uid = 0

    def selected(self, address: Address) -> list[Tree]:
        return [tree for place, tree in self.objects.items() if place.is_in(address)]

    # What tests do

    async def put(self, tree: Tree, plural: str = "pods") -> Tree:
        """Create or replace an object."""
        metadata = tree["metadata"]
        address = Address(plural, metadata.get("namespace", ""), metadata["name"])
        known = self.objects.get(address)
        if "uid" not in metadata:
            metadata = metadata | {"uid": known["metadata"]["uid"] if known else self._new_uid()}
        return await self._store(address, tree | {"metadata": metadata})

    async def remove(self, name: str, namespace: str = "ns", plural: str = "pods") -> None:
        address = Address(plural, namespace, name)
        self.version += 1
        tree = self.objects.pop(address)
        tree = tree | {"metadata": tree["metadata"] | {"resourceVersion": str(self.version)}}
        await self._record(Change(self.version, "DELETED", address, tree))

    async def edit(self, address: Address, patch: Tree, *, manager: str = "kubectl-edit") -> None:
        """Change an object as another manager would, which then is the only owner of the fields."""
        live = copy.deepcopy(self.objects[address])
        for entry in live["metadata"].get("managedFields", []):
            entry["fieldsV1"] = without(entry["fieldsV1"], patch)
        live["metadata"].setdefault("managedFields", []).append(
            {"manager": manager, "operation": "Update", "apiVersion": live["apiVersion"], "fieldsV1": field_set(patch)}
        )
        await self._store(address, merge(live, patch))

    def compact(self) -> None:
        """Drop the history: watches from older versions get 410."""
        self.compacted = self.version
        self.history.clear()

    # What clients do

    async def create(self, collection: Address, tree: Tree) -> Tree:
        metadata = tree["metadata"]
        name = metadata.get("name") or f"{metadata['generateName']}{self.version}"
        place = collection._replace(name=name)
        if place in self.objects:
            raise Refusal(409, "AlreadyExists")
        metadata = metadata | {"name": name, "namespace": place.namespace, "uid": self._new_uid()}
        return await self._store(place, tree | {"metadata": metadata})

    def read(self, place: Address) -> Tree:
        if place not in self.objects:
            raise Refusal(404, "NotFound")
        return self.objects[place]

    async def replace(self, place: Address, tree: Tree) -> Tree:
        if tree["metadata"].get("resourceVersion") != self.read(place)["metadata"]["resourceVersion"]:
            raise Refusal(409, "Conflict")
        return await self._store(place, tree)

    async def merge_patch(self, place: Address, patch: Tree) -> Tree:
        return await self._store(place, merge(self.read(place), patch))

    async def json_patch(self, place: Address, operations: list[Tree]) -> Tree:
        live = self.read(place)
        metadata = dict(live["metadata"])
        for operation in operations:
            field = operation["path"].removeprefix("/metadata/")
            if operation["op"] == "test" and metadata.get(field) != operation["value"]:
                raise Refusal(422, "Invalid")
            if field == "resourceVersion" and operation["value"] != live["metadata"]["resourceVersion"]:
                raise Refusal(409, "Conflict")
            metadata[field] = operation["value"]
        tree = live | {"metadata": metadata}
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            self.objects[place] = tree
            await self.remove(place.name, place.namespace, place.plural)
            return tree
        return await self._store(place, tree)

    async def apply(self, address: Address, body: Tree, manager: str, *, dry_run: bool) -> Tree:
        place = address._replace(subresource="")
        live = self.objects.get(place) or {"metadata": {"uid": self._new_uid()}}
        entry = {"manager": manager, "operation": "Apply", "apiVersion": body["apiVersion"]}
        if address.subresource:
            entry["subresource"] = address.subresource
        others = [each for each in live["metadata"].get("managedFields", []) if each | entry != each]
        applied = {name: value for name, value in body.items() if name not in ("apiVersion", "kind", "metadata")}
        result = merge(live, body)
        result["metadata"]["managedFields"] = [*others, entry | {"fieldsV1": field_set(applied)}]
        if dry_run:
            return result | {"dry": True}
        return live if result == live else await self._store(place, result)

    async def delete(self, place: Address, options: Tree) -> Tree:
        live = self.read(place)
        uid = options.get("preconditions", {}).get("uid")
        if uid is not None and uid != live["metadata"]["uid"]:
            raise Refusal(409, "Conflict")
        grace = options.get("gracePeriodSeconds", 30 if place.plural == "pods" else 0)
        if live["metadata"].get("finalizers") or grace:
            ending = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": grace}
            return await self._store(place, live | {"metadata": live["metadata"] | ending})
        await self.remove(place.name, place.namespace, place.plural)
        return {"kind": "Status", "status": "Success"}

    def _new_uid(self) -> str:
        self._uid += 1
        return f"uid-{self._uid}"

    async def _store(self, address: Address, tree: Tree) -> Tree:
        self.version += 1
        tree = tree | {"metadata": tree["metadata"] | {"resourceVersion": str(self.version)}}
        kind = "MODIFIED" if address in self.objects else "ADDED"
        self.objects[address] = tree
        await self._record(Change(self.version, kind, address, tree))
        return tree

    async def _record(self, change: Change) -> None:
        self.history.append(change)
        await self.notify()

    async def notify(self) -> None:
        async with self.changed:
            self.changed.notify_all()


def merge(live: Tree, patch: Tree) -> Tree:
    result = dict(live)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            result[name] = merge(result.get(name) or {}, value)
        else:
            result[name] = value
    return result


def field_set(tree: Any) -> Tree:
    """The managedFields form of what a tree sets; lists count as one field."""
    if not isinstance(tree, dict):
        return {}
    return {f"f:{name}": field_set(value) for name, value in tree.items()}


def without(owned: Tree, patch: Tree) -> Tree:
    """The field set that remains after another manager has written the patch."""
    result = dict(owned)
    for name, value in patch.items():
        field = f"f:{name}"
        if field in result:
            if isinstance(value, dict) and result[field]:
                result[field] = without(result[field], value)
            else:
                del result[field]
    return result
