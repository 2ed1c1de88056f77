"""What a worker pod shows of its Slurm node: conditions, labels and annotations, in one patch."""

from datetime import datetime
from functools import lru_cache
from typing import TypeAlias

import msgspec

from kubeslurm.api import names
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.decide.nodeset import drain
from kubeslurm.decide.nodeset.drain import Hold
from kubeslurm.decide.nodeset.facts import ALSO_USER, STATE_PREFIX, Worker

BASE_STATES = ("ALLOCATED", "DOWN", "ERROR", "FUTURE", "IDLE", "MIXED", "UNKNOWN")
FLAGS = {
    "COMPLETING": "Completing",
    "DRAIN": "Drain",
    "FAIL": "Fail",
    "INVALID": "Invalid",
    "INVALID_REG": "InvalidReg",
    "MAINTENANCE": "Maintenance",
    "NOT_RESPONDING": "NotResponding",
    "UNDRAIN": "Undrain",
}


Patch: TypeAlias = Tree


class View(msgspec.Struct, frozen=True):
    """What a pod's patch is computed from, besides the pod."""

    nodeset: NodeSet
    now: datetime
    known: bool
    deadlines: dict[str, str] | None = None  # Slurm node -> when its last job ends; None when nobody knows


@lru_cache
def states(told: tuple[str, ...]) -> tuple[str, ...]:
    """The condition types that describe a node's state: its base, then its flags."""
    base = next((each for each in BASE_STATES if each in told), "")
    found = (STATE_PREFIX + base.capitalize(),) if base else ()
    return found + tuple(STATE_PREFIX + word for flag, word in FLAGS.items() if flag in told)


def patch(worker: Worker, held: Hold | None, view: View) -> Tree | None:
    """A strategic merge patch for the pod's status, which the server lets carry labels and annotations; None: all well.

    While Slurm cannot be asked, the last known conditions and the protection of busy workers stay as they are.
    """
    if worker.terminating:
        return None
    metadata: Tree = {}
    if annotations := _annotations(worker, held, view):
        metadata["annotations"] = annotations
    if labels := _labels(worker, view):
        metadata["labels"] = labels
    conditions = _conditions(worker, view) if view.known and worker.node is not None else []
    tree: Tree = {"metadata": metadata} if metadata else {}
    return (tree | ({"status": {"conditions": conditions}} if conditions else {})) or None


def _conditions(worker: Worker, view: View) -> list[Tree]:
    node = worker.node
    wanted = states(node.state) if node is not None else ()
    have = {each.type: each for each in worker.pod.status.conditions if each.type.startswith(STATE_PREFIX)}
    reason = node.reason if node is not None else ""
    changed: list[Tree] = [
        {"type": kind, "status": "True", "message": reason, "lastTransitionTime": _stamp(view.now)}
        for kind in wanted
        if kind not in have or have[kind].message != reason or have[kind].status != "True"
    ]
    return changed + [{"type": kind, "$patch": "delete"} for kind in have if kind not in wanted]


def _stamp(moment: datetime) -> str:
    text: str = msgspec.to_builtins(moment.replace(microsecond=0))
    return text


def _labels(worker: Worker, view: View) -> Tree:
    have = worker.pod.metadata.labels
    changed: Tree = {}
    if view.known and worker.node is not None:
        protect = worker.node.busy and view.nodeset.spec.workloadDisruptionProtection
        if protect != worker.protected:
            changed[names.LABEL_POD_PROTECT] = "true" if protect else None
    if not have.get(names.LABEL_POD_NAME):
        changed[names.LABEL_POD_NAME] = worker.name[:63]
    if worker.slurm_name and have.get(names.LABEL_POD_HOSTNAME) != worker.slurm_name[:63]:
        changed[names.LABEL_POD_HOSTNAME] = worker.slurm_name[:63]
    return changed


def _annotations(worker: Worker, held: Hold | None, view: View) -> Tree:
    have = worker.pod.metadata.annotations
    wanted: dict[str, str | None] = {}
    if held is not None and held.cause:
        wanted[names.POD_CORDON] = "true"
        wanted[names.POD_CORDON_BY] = held.cause + (ALSO_USER if worker.user_cordoned else "")
    elif held is None and worker.cordoned and view.known and drain.released(worker):
        wanted[names.POD_CORDON_BY] = None
        if not worker.user_cordoned:
            wanted[names.POD_CORDON] = None
    elif held is None and worker.cordoned and drain.left_by_operator(worker):
        wanted[names.POD_CORDON_BY] = drain.NODE  # ours from now on, so that it can be lifted
    elif held is not None and names.POD_CORDON_BY in have:
        wanted[names.POD_CORDON_BY] = None  # ours is over, the user's own cordon remains
    if worker.host is not None:
        topology = worker.host.metadata.annotations.get(names.TOPOLOGY_SPEC, "")
        if topology or have.get(names.TOPOLOGY_SPEC):
            wanted[names.TOPOLOGY_SPEC] = topology or None
    if view.deadlines is not None:
        wanted[names.POD_DEADLINE] = view.deadlines.get(worker.slurm_name)
    return {key: value for key, value in wanted.items() if have.get(key) != value}
