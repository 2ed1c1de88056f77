"""An API server in memory, with the interface of the operator's client."""

import builtins
import copy
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from kubeslurm.api import kinds
from kubeslurm.api.kinds import CONTROLLER, NODE, NODESET, POD, Kind
from kubeslurm.api.meta import Tree
from kubeslurm.api.resource import Resource
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.errors import AlreadyExists, Conflict, NotFound
from kubeslurm.kube.objects import decoder_of, key_of_tree
from tests.support.clock import stamp

KINDS: tuple[Kind[Any], ...] = (
    CONTROLLER,
    NODE,
    NODESET,
    POD,
    kinds.CONFIGMAP,
    kinds.CONTROLLER_REVISION,
    kinds.POD_DISRUPTION_BUDGET,
    kinds.RESTAPI,
    kinds.SECRET,
    kinds.SERVICE,
    kinds.STATEFULSET,
)


class FakeKube:
    """An API server with the interface of the client; it records writes, and pods that were deleted under a job."""

    def __init__(self) -> None:
        self.has_processes: Callable[[Tree], bool] = lambda _pod: False
        self.violations: list[str] = []
        self.versions = itertools.count(100)
        self.trees: dict[tuple[str, Key], Tree] = {}
        self.writes: list[str] = []
        self.caches = self.new_caches()

    def new_caches(self) -> Caches:
        """New stores with the objects of the server, as a new operator process has them."""
        self.caches = Caches(None)  # type: ignore[arg-type]
        for kind in KINDS:
            store = self.caches.add(kind)
            for (plural, _), tree in self.trees.items():
                if plural == kind.plural:
                    store.put(_read(kind, tree))
            store.mark_synced()
        return self.caches

    def put(self, kind: Kind[Any], tree: Tree) -> None:
        """A change by anyone, in the store at once."""
        metadata = tree["metadata"]
        version = next(self.versions)
        metadata |= {"resourceVersion": str(version)}
        metadata.setdefault("uid", f"uid-{version}")
        if "creationTimestamp" not in metadata:
            metadata["creationTimestamp"] = stamp()
        self.trees[kind.plural, key_of_tree(tree)] = tree
        if kind in KINDS:
            self.caches.store(kind).put(_read(kind, tree))

    def remove(self, kind: Kind[Any], key: Key) -> None:
        self.trees.pop((kind.plural, key), None)
        if kind in KINDS:
            self.caches.store(kind).remove(key)

    def pods(self) -> builtins.list[Tree]:
        return [tree for (plural, _), tree in list(self.trees.items()) if plural == POD.plural]

    async def apply(self, tree: Tree, *, status: bool = False) -> Tree:
        kind = kinds.kind_of(tree)
        if status:
            whole = copy.deepcopy(self.trees[kind.plural, key_of_tree(tree)])
            whole["status"] = tree["status"]
            self._write("status", kind, tree)
            self.put(kind, whole)
        elif self.trees.get((kind.plural, key_of_tree(tree)), {}).get("spec") != tree.get("spec"):
            self._write("apply", kind, tree)
            self.put(kind, copy.deepcopy(tree))
        return tree

    async def create(self, tree: Tree) -> Resource:
        kind, created = kinds.kind_of(tree), copy.deepcopy(tree)
        created["metadata"].setdefault("name", f"{tree['metadata'].get('generateName', '')}{next(self.versions)}")
        if (kind.plural, key_of_tree(created)) in self.trees:
            raise AlreadyExists(409, "AlreadyExists", "it exists")
        if kind is POD:
            created["status"] = {"phase": "Pending"}
        self._write("create", kind, created)
        self.put(kind, created)
        found: Resource = _read(kind, created)
        return found

    async def patch(self, kind: Kind[Any], key: Key, patch: Tree | builtins.list[Tree], **_how: str) -> None:
        if (kind.plural, key) not in self.trees:
            raise NotFound(404, "NotFound", "gone")
        tree = copy.deepcopy(self.trees[kind.plural, key])
        if isinstance(patch, list):
            _operate(tree, patch)
        else:
            _merge(tree, patch)
        self._write("patch", kind, tree)
        self.put(kind, tree)

    async def delete(self, kind: Kind[Any], key: Key, *, uid: str | None = None, grace: int | None = None) -> None:
        tree = self.trees.get((kind.plural, key))
        if tree is None:
            return
        if uid is not None and tree["metadata"]["uid"] != uid:
            raise Conflict(409, "Conflict", "another object has that name")
        self._write("delete", kind, tree)
        if kind is not POD:
            self.remove(kind, key)
            return
        if self.has_processes(tree):
            self.violations.append(f"{key.name} was deleted under a running job")
        deleted = copy.deepcopy(tree)
        deleted["metadata"] |= {"deletionTimestamp": stamp(), "deletionGracePeriodSeconds": 30}
        self.put(kind, deleted)

    async def get(self, kind: Kind[Any], key: Key) -> Any:
        tree = self.trees.get((kind.plural, key))
        return _read(kind, tree) if tree else None

    async def list(self, kind: Kind[Any], namespace: str, _labels: Mapping[str, str]) -> builtins.list[Any]:
        return [
            _read(kind, tree)
            for (plural, key), tree in self.trees.items()
            if (plural, key.namespace) == (kind.plural, namespace)
        ]

    async def add_finalizer(self, kind: Kind[Any], obj: Any, name: str) -> Any:
        if name not in obj.metadata.finalizers:
            tree = copy.deepcopy(self.trees[kind.plural, Key(*obj.key)])
            tree["metadata"]["finalizers"] = [*tree["metadata"].get("finalizers", ()), name]
            self.put(kind, tree)
        return self.caches.store(kind).get(Key(*obj.key))

    async def remove_finalizer(self, kind: Kind[Any], obj: Any, name: str) -> None:
        tree = copy.deepcopy(self.trees[kind.plural, Key(*obj.key)])
        rest = [each for each in tree["metadata"].get("finalizers", ()) if each != name]
        tree["metadata"]["finalizers"] = rest
        if rest or not tree["metadata"].get("deletionTimestamp"):
            self.put(kind, tree)
        else:
            self.remove(kind, Key(*obj.key))

    def _write(self, verb: str, kind: Kind[Any], tree: Tree) -> None:
        self.writes.append(f"{verb} {kind.plural} {tree['metadata'].get('name', '')}")


def _merge(tree: Tree, patch: Tree) -> None:
    for field, value in patch.items():
        if field == "conditions":
            kept = {each["type"]: each for each in tree.get(field, ())} | {each["type"]: each for each in value}
            tree[field] = [each for each in kept.values() if each.get("$patch") != "delete"]
        elif field == "ownerReferences":
            kept = {each["uid"]: each for each in (*tree.get(field, ()), *value)}
            tree[field] = list(kept.values())
        elif value is None:
            tree.pop(field, None)
        elif isinstance(value, dict):
            _merge(tree.setdefault(field, {}), value)
        else:
            tree[field] = value


def _operate(tree: Tree, operations: list[Tree]) -> None:
    """Applies a JSON patch, to maps only."""
    for each in operations:
        *path, last = (part.replace("~1", "/") for part in each["path"].split("/")[1:])
        inner = tree
        for part in path:
            inner = inner[part]
        match each["op"]:
            case "test":
                assert inner[last] == each["value"]
            case "add":
                inner[last] = each["value"]
            case "remove":
                del inner[last]


def _read(kind: Kind[Any], tree: Tree) -> Any:
    return decoder_of(kind).decode(msgspec.json.encode(tree))
