"""How a Kubernetes node shows that an admin or a health check took its Slurm node out of service.

What we did is kept in an annotation, and only that is ever undone. As long as the annotation is there nothing is done
again: whoever uncordons the node or removes the taint meanwhile has the last word.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

import msgspec

from kubeslurm.api import names, views
from kubeslurm.api.meta import Tree
from kubeslurm.decide.nodeset.slurm.drain import CORDON, clean
from kubeslurm.decide.nodeset.slurm.reasons import foreign_reason
from kubeslurm.slurm.rest.models import Node

Mode = Literal["Condition", "Taint", "Cordon"]
CONDITION: Mode = "Condition"
TAINT: Mode = "Taint"
# The annotation of a node that somebody had cordoned or tainted already, or uncordoned since: nothing of ours to undo.
SEEN = "Seen"

_ANNOTATION = "/metadata/annotations/" + names.SLURM_DRAIN.replace("/", "~1")
_TAINT = {"key": names.SLURM_DRAIN, "effect": "NoSchedule"}


class Change(msgspec.Struct, frozen=True):
    """The writes that bring a node in line: operations on the node itself, and conditions in its status."""

    operations: tuple[Tree, ...] = ()
    conditions: tuple[Tree, ...] = ()


def told(nodes: Iterable[Node | None]) -> str:
    """What is said in Slurm about the Slurm nodes of one Kubernetes node; empty when all of them are in service."""
    reasons = {node.name: foreign_reason(node) for node in nodes if node is not None}
    return clean("; ".join(f"{name}: {reason}" for name, reason in sorted(reasons.items()) if reason))


def change(host: views.Node, text: str, mode: Mode, now: datetime) -> Change:
    """What the node must be told, given what Slurm says."""
    return Change(tuple(_operations(host, bool(text), mode)), tuple(_conditions(host, text, now)))


def _operations(host: views.Node, out_of_service: bool, mode: Mode) -> list[Tree]:
    done = host.metadata.annotations.get(names.SLURM_DRAIN, "")
    acts = out_of_service and mode != CONDITION
    if done and (not acts or done not in (mode, SEEN)):
        return _guarded(host, [*_undo(host, done), {"op": "remove", "path": _ANNOTATION}])
    if acts and not done:
        steps = _do(host, mode)
        return _guarded(host, [*steps, _annotate(host, mode if steps else SEEN)])
    if done == CORDON and not host.spec.unschedulable:
        return _guarded(host, [_annotate(host, SEEN)])  # the next cordon is the user's own
    return []


def _do(host: views.Node, mode: Mode) -> list[Tree]:
    if mode == CORDON:
        return [] if host.spec.unschedulable else [{"op": "add", "path": "/spec/unschedulable", "value": True}]
    if any(taint.key == names.SLURM_DRAIN for taint in host.spec.taints):
        return []
    if not host.spec.taints:
        return [{"op": "add", "path": "/spec/taints", "value": [_TAINT]}]
    return [{"op": "add", "path": "/spec/taints/-", "value": _TAINT}]


def _undo(host: views.Node, done: str) -> list[Tree]:
    if done == CORDON and host.spec.unschedulable:
        return [{"op": "remove", "path": "/spec/unschedulable"}]
    if done == TAINT:
        ours = [index for index, taint in enumerate(host.spec.taints) if taint.key == names.SLURM_DRAIN]
        return [{"op": "remove", "path": f"/spec/taints/{index}"} for index in reversed(ours)]
    return []


def _annotate(host: views.Node, value: str) -> Tree:
    if not host.metadata.annotations:
        return {"op": "add", "path": "/metadata/annotations", "value": {names.SLURM_DRAIN: value}}
    return {"op": "add", "path": _ANNOTATION, "value": value}


def _guarded(host: views.Node, operations: list[Tree]) -> list[Tree]:
    """Only on the node as it was seen: a user's cordon of this very moment must not be taken for ours."""
    return [{"op": "test", "path": "/metadata/resourceVersion", "value": host.metadata.resourceVersion}, *operations]


def _conditions(host: views.Node, text: str, now: datetime) -> list[Tree]:
    kind = names.SLURM_DRAIN_CONDITION
    have = next((each for each in host.status.conditions if each.type == kind), None)
    if not text:
        return [{"type": kind, "$patch": "delete"}] if have is not None else []
    if have is not None and have.status == "True" and have.message == text:
        return []
    stamp = msgspec.to_builtins(now.replace(microsecond=0))
    return [{"type": kind, "status": "True", "reason": "DrainedInSlurm", "message": text, "lastTransitionTime": stamp}]
