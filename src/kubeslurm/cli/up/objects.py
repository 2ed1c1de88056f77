"""Compares the objects of a release with those of the cluster: which are missing, being deleted, or do not run."""

import json
from collections.abc import Iterable

import yaml

from kubeslurm.api.meta import Tree
from kubeslurm.cli.up.access import Access

WORKLOADS = ("Deployment", "StatefulSet")


def expected(manifest: str, namespace: str) -> list[Tree]:
    """The objects of a manifest, each with a namespace: kubectl ignores that of cluster-wide objects."""
    found = [tree for tree in yaml.load_all(manifest, yaml.CSafeLoader) if tree]
    return [{**tree, "metadata": {"namespace": namespace, **tree["metadata"]}} for tree in found]


def live(access: Access, trees: Iterable[Tree]) -> list[Tree]:
    """Those of the objects that exist, as they are now."""
    request = json.dumps({"apiVersion": "v1", "kind": "List", "items": [_stub(tree) for tree in trees]})
    text = access.run("get", "--filename=-", "--ignore-not-found", "--output=json", stdin=request)
    found: Tree = json.loads(text or '{"items": []}')
    items: list[Tree] = found.get("items", [found])
    return items


def compare(wanted: Iterable[Tree], found: Iterable[Tree], *, settled: bool) -> list[str]:
    """What is wrong, as short sentences.

    A workload without a ready pod counts only if the cluster is `settled`: after its start, pods take a while.
    """
    by_name = {title(tree): tree for tree in found}
    wrong = {title(tree): _defect(tree, by_name.get(title(tree)), settled=settled) for tree in wanted}
    return [f"{name} {defect}" for name, defect in wrong.items() if defect]


def _defect(wanted: Tree, found: Tree | None, *, settled: bool) -> str:
    if found is None:
        return "is missing"
    if is_deleting(found):
        return "is being deleted"
    if wanted["kind"] not in WORKLOADS or not _replicas(wanted):
        return ""
    ready = found.get("status", {}).get("readyReplicas", 0)
    return "does not run" if not _replicas(found) or (settled and not ready) else ""


def title(tree: Tree) -> str:
    """The kind and the name of an object."""
    return f"{tree['kind']} {tree['metadata']['name']}"


def is_deleting(tree: Tree) -> bool:
    """Whether somebody has deleted the object, and something still holds it."""
    return "deletionTimestamp" in tree["metadata"]


def _stub(tree: Tree) -> Tree:
    address = {key: value for key, value in tree["metadata"].items() if key in ("name", "namespace")}
    return {"apiVersion": tree["apiVersion"], "kind": tree["kind"], "metadata": address}


def _replicas(tree: Tree) -> int:
    count: int = tree["spec"].get("replicas", 1)
    return count
