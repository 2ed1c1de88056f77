"""Workloads that exist already: their pods stay as they are until a user asks for something else."""

import msgspec

from kubeslurm.api import names
from kubeslurm.api.meta import Tree
from kubeslurm.api.views import Deployment, StatefulSet
from kubeslurm.build.common import digest

# Kubernetes refuses to change these.
IMMUTABLE = ("selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates")


def adapted(desired: Tree, live: StatefulSet | Deployment | None, requested: Tree | None = None) -> Tree:
    """The desired workload, except for what cannot or need not change in the live one.

    The live pod template is kept for as long as `requested` is the same, whatever this release would make of it. Left
    out, it is the template itself: for daemons that may be restarted at any time. A workload without a note of what was
    requested is of another operator or an older release: it counts as requested now.
    """
    template = desired["spec"]["template"]
    notes = {
        names.REQUESTED: _digest(template if requested is None else requested),
        names.TEMPLATE: _digest(template),
    }
    if live is None:
        return _noted(desired, notes)
    spec: Tree = desired["spec"] | {field: live.spec[field] for field in IMMUTABLE if field in live.spec}
    before = live.metadata.annotations
    is_new = before.get(names.REQUESTED, notes[names.REQUESTED]) != notes[names.REQUESTED]
    # The template of this very release is applied as it is, which undoes edits of it.
    if is_new or before.get(names.TEMPLATE) == notes[names.TEMPLATE]:
        return _noted(desired | {"spec": spec}, notes)
    kept = notes | {names.TEMPLATE: before.get(names.TEMPLATE, "")}
    return _noted(desired | {"spec": spec | {"template": live.spec["template"]}}, kept)


def is_of_another_operator(live: StatefulSet | Deployment) -> bool:
    """Whether another operator made it, and it was not taken over yet."""
    annotations = live.spec.get("template", {}).get("metadata", {}).get("annotations") or {}
    return names.REQUESTED not in live.metadata.annotations and names.RESTART_HASH not in annotations


def _noted(tree: Tree, notes: dict[str, str]) -> Tree:
    annotations = {**tree["metadata"].get("annotations", {}), **{name: text for name, text in notes.items() if text}}
    return tree | {"metadata": tree["metadata"] | {"annotations": annotations}}


def _digest(tree: Tree) -> str:
    return digest.of_files({"template": msgspec.json.encode(tree, order="sorted").decode()})
