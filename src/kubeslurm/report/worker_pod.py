"""What a worker pod shows of its Slurm node: conditions, labels and annotations, in one patch."""

from datetime import datetime
from functools import lru_cache

import msgspec

from kubeslurm.api import names
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.decide.nodeset.cordon import Cordon
from kubeslurm.decide.nodeset.facts import Facts
from kubeslurm.decide.nodeset.worker import STATE_PREFIX, Worker

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


@lru_cache
def states(state: tuple[str, ...]) -> tuple[str, ...]:
    """The condition types that describe a node's state: its base, then its flags."""
    base = next((each for each in BASE_STATES if each in state), "")
    found = (STATE_PREFIX + base.capitalize(),) if base else ()
    return found + tuple(STATE_PREFIX + word for flag, word in FLAGS.items() if flag in state)


def patch(nodeset: NodeSet, worker: Worker, cordon: Cordon | None, facts: Facts) -> Tree | None:
    """A strategic merge patch for the pod's status, which the server lets carry labels and annotations.

    None when the pod is as it should be. While Slurm cannot be asked, the last known conditions and the protection of
    busy workers stay as they are.
    """
    if worker.terminating:
        return None
    metadata: Tree = {}
    if annotations := _annotations(worker, cordon, facts):
        metadata["annotations"] = annotations
    if labels := _labels(nodeset, worker, facts):
        metadata["labels"] = labels
    conditions = _conditions(worker, facts.now) if facts.slurm_known and worker.node is not None else []
    tree: Tree = {"metadata": metadata} if metadata else {}
    return (tree | ({"status": {"conditions": conditions}} if conditions else {})) or None


def _conditions(worker: Worker, now: datetime) -> list[Tree]:
    node = worker.node
    wanted = states(node.state) if node is not None else ()
    have = {each.type: each for each in worker.pod.status.conditions if each.type.startswith(STATE_PREFIX)}
    reason = node.reason if node is not None else ""
    changed: list[Tree] = [
        {"type": kind, "status": "True", "message": reason, "lastTransitionTime": _timestamp(now)}
        for kind in wanted
        if kind not in have or have[kind].message != reason or have[kind].status != "True"
    ]
    return changed + [{"type": kind, "$patch": "delete"} for kind in have if kind not in wanted]


def _timestamp(moment: datetime) -> str:
    text: str = msgspec.to_builtins(moment.replace(microsecond=0))
    return text


def _labels(nodeset: NodeSet, worker: Worker, facts: Facts) -> Tree:
    have = worker.pod.metadata.labels
    changed: Tree = {}
    if facts.slurm_known and worker.node is not None:
        protect = worker.node.busy and nodeset.spec.workloadDisruptionProtection
        if protect != worker.protected:
            changed[names.LABEL_POD_PROTECT] = "true" if protect else None
    if not have.get(names.LABEL_POD_NAME):
        changed[names.LABEL_POD_NAME] = worker.name[:63]
    if worker.slurm_name and have.get(names.LABEL_POD_HOSTNAME) != worker.slurm_name[:63]:
        changed[names.LABEL_POD_HOSTNAME] = worker.slurm_name[:63]
    return changed


def _annotations(worker: Worker, cordon: Cordon | None, facts: Facts) -> Tree:
    have = worker.pod.metadata.annotations
    wanted: dict[str, str | None] = {}
    if cordon is not None:
        wanted[names.POD_CORDON] = "true" if cordon.cordoned else None
        wanted[names.POD_CORDON_BY] = cordon.by or None
    if worker.host is not None:
        topology = worker.host.metadata.annotations.get(names.TOPOLOGY_SPEC, "")
        if topology or have.get(names.TOPOLOGY_SPEC):
            wanted[names.TOPOLOGY_SPEC] = topology or None
    if facts.slurm_known and worker.node is not None:
        # Kept while Slurm does not know the node: the gate must not take it for one that never had a job.
        wanted[names.POD_BUSY] = "true" if worker.node.busy else None
    if facts.job_ends is not None:
        wanted[names.POD_DEADLINE] = facts.job_ends.get(worker.slurm_name)
    return {key: value for key, value in wanted.items() if have.get(key) != value}
