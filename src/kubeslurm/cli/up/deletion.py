"""Waits until objects that were deleted are gone, because only then they can be created again."""

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress

from kubeslurm.api import names
from kubeslurm.api.meta import Tree
from kubeslurm.cli.up import objects
from kubeslurm.cli.up.access import Access
from kubeslurm.cli.up.helm import Release
from kubeslurm.local.errors import LocalError
from kubeslurm.local.host.progress import Step

TIMEOUT = 120.0
PAUSE = 0.5
KINDS = ("accountings", "controllers", "restapis", "nodesets", "loginsets", "tokens")
# These wait until the last NodeSet is gone: workers are drained with their help.
HELD_BY_NODESETS = ("RestApi", "Controller", "Accounting")
OWNER = "meta.helm.sh/release-name"


def leftovers(access: Access, release: Release) -> list[Tree]:
    """What is left of an earlier installation of a release that is not installed."""
    kinds = ",".join(f"{kind}.slinky.slurm.net" for kind in KINDS)
    found = access.get_json("get", kinds, f"--namespace={release.namespace}")["items"]
    return [tree for tree in found if tree["metadata"].get("annotations", {}).get(OWNER) == release.name]


def wait_until_gone(access: Access, step: Step, wanted: Sequence[Tree]) -> None:
    """Wait until none of these objects is being deleted; raises if that takes long, or cannot end."""
    end = time.monotonic() + TIMEOUT
    while deleting := _deleting(found := objects.live(access, wanted)):
        if held := held_objects(found):
            _release(access, held)
        step.update(note=f"waiting until {objects.title(deleting[0])} is deleted")
        if time.monotonic() > end:
            raise LocalError(
                f"{objects.title(deleting[0])} is still being deleted: {_cause(deleting[0])}.",
                "Run the same command again when it is gone.",
            )
        time.sleep(PAUSE)


def held_objects(trees: Iterable[Tree]) -> list[Tree]:
    """Objects whose deletion cannot end, because there are NodeSets that nobody has deleted."""
    found = list(trees)
    if not any(tree["kind"] == "NodeSet" and not objects.is_deleting(tree) for tree in found):
        return []
    return [tree for tree in _deleting(found) if tree["kind"] in HELD_BY_NODESETS]


def _release(access: Access, held: Sequence[Tree]) -> None:
    """Let RestApis go, which hold no state and which jobs do not need; raises for anything else."""
    for tree in held:
        if tree["metadata"].get("annotations", {}).get(names.FORCE_DELETE) == "true":
            continue  # the operator lets it go
        kind, name, namespace = tree["kind"], tree["metadata"]["name"], tree["metadata"]["namespace"]
        command = ("annotate", kind.lower(), name, f"--namespace={namespace}", f"{names.FORCE_DELETE}=true")
        if kind != "RestApi":
            raise LocalError(
                f"{kind} {name} is being deleted, and waits until its NodeSets are deleted, too.",
                f"To put it back, run `kubectl {' '.join(command)}` and then the same command again.",
            )
        with suppress(LocalError):  # it may have gone this moment; the next look tells
            access.run(*command, "--overwrite")


def _deleting(trees: Iterable[Tree]) -> list[Tree]:
    """Those that are being deleted, NodeSets first: others wait for them."""
    return sorted(filter(objects.is_deleting, trees), key=lambda tree: tree["kind"] != "NodeSet")


def _cause(tree: Tree) -> str:
    """What the object says about it, or else which finalizers hold it."""
    for each in tree.get("status", {}).get("conditions", []):
        if each["type"] in ("Progressing", "Terminating") and each["status"] == "True":
            return str(each["message"])
    holders = [*tree["metadata"].get("finalizers", []), *tree.get("spec", {}).get("finalizers", [])]
    return f"it waits for {', '.join(holders) or 'its dependents'}"
