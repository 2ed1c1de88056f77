"""Slurm nodes and pods that lost each other: whom to fence, which records to delete, which pods to start afresh."""

import re
from collections.abc import Collection, Iterable, Mapping

import msgspec

from kubeslurm.api.nodeset import NodeSet
from kubeslurm.decide.drain import own
from kubeslurm.decide.facts import PodInfo, Seen, Worker
from kubeslurm.slurm.models import REASON_PREFIX, Node

# A worker counts as unregistered only after that many full lists in a row, each asked for while it was ready.
ABSENCES = 3
# slurmctld that lost many nodes at once has lost its memory; restarting the workers would not bring it back.
MISSING_LIMIT = 0.3
AT_ONCE = 1


class Records(msgspec.Struct, frozen=True):
    """What to do with Slurm nodes that have no pod."""

    delete: tuple[str, ...] = ()
    fence: tuple[Node, ...] = ()


def silent(nodeset: NodeSet, nodes: Iterable[Node]) -> list[Node]:
    """Nodes that bear this NodeSet's feature and a name it would give, and that have neither comment nor slurmd.

    Their pod was lost before it could be named. A node that answers may be a machine of somebody else's.
    """
    ours = re.compile(re.escape(nodeset.hostname_prefix or f"{nodeset.name}-") + "[0-9]+")
    return [
        node
        for node in nodes
        if not node.comment and node.down and node.not_responding and not node.busy and ours.fullmatch(node.name)
    ]


def orphans(records: Iterable[Node], wanted: Collection[str]) -> Records:
    """Records whose pod is gone. Busy ones are fenced first: their jobs have lost their processes and would hang.

    A node that an admin drained keeps its record if a worker of that name is wanted again, so that the drain outlives
    the pod.
    """
    delete: list[str] = []
    fence: list[Node] = []
    for node in records:
        if node.busy:
            if not node.down:
                fence.append(node)
        elif own(node) or not node.reason or node.name not in wanted:
            delete.append(node.name)
    return Records(tuple(delete), tuple(fence))


def fence_reason(node: Node) -> str:
    info = PodInfo.parse(node.comment)
    return f"{REASON_PREFIX}Pod ({info.namespace}/{info.podName}) is gone"


def suspects(workers: Iterable[Worker]) -> list[Worker]:
    """Busy workers whose slurmd is not the one that Slurm's comment names: their jobs may have lost their processes."""
    found = []
    for worker in workers:
        node = worker.node
        if node is None or not node.busy or node.down or not worker.container or worker.terminating:
            continue
        info = PodInfo.parse(node.comment)
        if info.podUID and (info.podUID, info.containerID) != (worker.pod.metadata.uid, worker.container):
            found.append(worker)
    return found


def unregistered(seen: Seen, absences: Mapping[str, int], leaving: Collection[str]) -> list[Worker]:
    """Ready workers that Slurm has not known for several polls; one at a time, and none when many are missing."""
    if not seen.known:
        return []
    ready = [worker for worker in seen.workers if worker.ready and worker.name not in leaving]
    lost = [worker for worker in ready if worker.node is None and absences.get(worker.slurm_name, 0) >= ABSENCES]
    if len(lost) > max(MISSING_LIMIT * len(ready), AT_ONCE):
        return []
    return sorted(lost, key=lambda worker: worker.name)[:AT_ONCE]


def outgrown(workers: Iterable[Worker], leaving: Collection[str]) -> list[Worker]:
    """Workers that Slurm refuses because the record of an earlier pod promised more than this slurmd has.

    Slurm takes a dynamic node's size only when it makes the record. A pod that made its own record and is refused
    nevertheless is configured wrongly, and starting it afresh would not help.
    """
    return [
        worker
        for worker in workers
        if worker.node is not None
        and worker.node.invalid
        and not worker.terminating
        and worker.name not in leaving
        and (info := PodInfo.parse(worker.node.comment)).podUID
        and info.podUID != worker.pod.metadata.uid
    ]
