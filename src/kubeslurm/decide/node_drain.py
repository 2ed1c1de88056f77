"""How a Kubernetes node shows that an admin or a health check took its Slurm node out of service.

An annotation records what the operator did, and only that is ever undone. While the annotation is there nothing is done
again, so that a user may uncordon the node or remove the taint.
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
# The value is on live nodes and must not change.
NOTHING_TO_UNDO = "Seen"

_ANNOTATION = "/metadata/annotations/" + names.SLURM_DRAIN.replace("/", "~1")
_TAINT = {"key": names.SLURM_DRAIN, "effect": "NoSchedule"}


class Change(msgspec.Struct, frozen=True):
    """The writes that bring a node in line: operations on the node itself, and conditions in its status."""

    operations: tuple[Tree, ...] = ()
    conditions: tuple[Tree, ...] = ()


def drain_message(nodes: Iterable[Node | None]) -> str:
    """Why admins took Slurm nodes of one Kubernetes node out of service; empty when all of them are in service."""
    reasons = {node.name: foreign_reason(node) for node in nodes if node is not None}
    return clean("; ".join(f"{name}: {reason}" for name, reason in sorted(reasons.items()) if reason))


def change(host: views.Node, message: str, mode: Mode, now: datetime) -> Change:
    """The writes for a Kubernetes node, given why its Slurm nodes are out of service; empty: they are in service."""
    return Change(tuple(_operations(host, bool(message), mode)), tuple(_conditions(host, message, now)))


def _operations(host: views.Node, out_of_service: bool, mode: Mode) -> list[Tree]:
    done = host.metadata.annotations.get(names.SLURM_DRAIN, "")
    acts = out_of_service and mode != CONDITION
    if done and (not acts or done not in (mode, NOTHING_TO_UNDO)):
        return _guarded(host, [*_undo(host, done), {"op": "remove", "path": _ANNOTATION}])
    if acts and not done:
        steps = _apply(host, mode)
        return _guarded(host, [*steps, _annotate(host, mode if steps else NOTHING_TO_UNDO)])
    if done == CORDON and not host.spec.unschedulable:
        return _guarded(host, [_annotate(host, NOTHING_TO_UNDO)])  # a cordon after this is the user's own
    return []


def _apply(host: views.Node, mode: Mode) -> list[Tree]:
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
    """Applies only to the node as it was read: a cordon that a user makes meanwhile must not count as ours."""
    return [{"op": "test", "path": "/metadata/resourceVersion", "value": host.metadata.resourceVersion}, *operations]


def _conditions(host: views.Node, message: str, now: datetime) -> list[Tree]:
    kind = names.SLURM_DRAIN_CONDITION
    have = next((each for each in host.status.conditions if each.type == kind), None)
    if not message:
        return [{"type": kind, "$patch": "delete"}] if have is not None else []
    if have is not None and have.status == "True" and have.message == message:
        return []
    since = msgspec.to_builtins(now.replace(microsecond=0))
    found = {"type": kind, "status": "True", "reason": "DrainedInSlurm", "message": message}
    return [found | {"lastTransitionTime": since}]
