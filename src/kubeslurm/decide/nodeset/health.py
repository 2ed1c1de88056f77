"""Slurm nodes and pods that lost each other: whom to fence, which records to delete, which pods to start afresh."""

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta

import msgspec

from kubeslurm.api import names
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.decide.nodeset.drain import foreign_reason, refused
from kubeslurm.decide.nodeset.facts import EPOCH, PodInfo, Seen, Worker
from kubeslurm.slurm.rest.models import REASON_PREFIX, Job, Node

# A worker counts as unregistered only after that many full lists in a row, half a minute apart, each asked for after
# this process itself had seen its slurmd running and its node missing.
ABSENCES = 3
# slurmctld that lost many nodes at once has lost its memory. Their jobs may still run, and come back with its volume.
MISSING_LIMIT = 0.3
AT_ONCE = 1
# How far the clocks of two machines may be apart before the ages of a job and of a container mean nothing.
CLOCKS = timedelta(seconds=5)
# A slurmd that was noticed so long after its start says nothing about jobs that began in between.
LATE = timedelta(seconds=30)
ALIVE = frozenset({"RUNNING", "SUSPENDED"})


class Records(msgspec.Struct, frozen=True):
    """What to do with Slurm nodes that have no pod."""

    delete: tuple[str, ...] = ()
    fence: tuple[Node, ...] = ()


def unnamed(nodeset: NodeSet, nodes: Iterable[Node], *, placed: bool = True) -> list[Node]:
    """Nodes without a job and without a comment that are this NodeSet's: their pod was lost before it could be named.

    Its slurmd may have said so itself; unless all pods are `placed`, though, one of them may be there unbeknown to us.
    Else the NodeSet's feature and a name that it would give must do, and only where nobody answers: it may be a machine
    of somebody else's.
    """
    owner = names.slurm_node_owner(nodeset.metadata.uid)
    ours = re.compile(re.escape(nodeset.hostname_prefix or f"{nodeset.name}-") + "[0-9]+")

    def is_ours(node: Node) -> bool:
        silent = node.down and node.not_responding
        if node.extra == owner:
            return silent or placed
        return silent and nodeset.slurm_name in node.features and ours.fullmatch(node.name) is not None

    return [node for node in nodes if not node.comment and not node.busy and is_ours(node)]


def is_of(nodeset: NodeSet, info: PodInfo, node: Node) -> bool:
    """Whether a record is this NodeSet's. Another cluster may have a NodeSet of that name in the same Slurm: a record
    with another uid is only ever cleared away when nobody is there."""
    if info.nodeSetUID in ("", nodeset.metadata.uid):
        return True
    return node.down and node.not_responding and not node.busy


def orphans(records: Iterable[Node], wanted: Collection[str]) -> Records:
    """Records whose pod is gone. Busy ones are fenced first: their jobs have lost their processes and would hang.

    A node that an admin drained or set down keeps its record if a worker of that name is wanted again, so that what
    the admin decided outlives the pod; also where a reason of ours was put before the admin's.
    """
    delete: list[str] = []
    fence: list[Node] = []
    for node in records:
        if node.busy:
            if not node.down:
                fence.append(node)
        elif not foreign_reason(node) or node.name not in wanted:
            delete.append(node.name)
    return Records(tuple(delete), tuple(fence))


def fence_reason(node: Node) -> str:
    info = PodInfo.parse(node.comment)
    return f"{REASON_PREFIX}Pod ({info.namespace}/{info.podName}) is gone"


def suspects(workers: Iterable[Worker], *, steps_survive: bool = False) -> list[Worker]:
    """Busy workers whose slurmd is not the one that Slurm's comment names: their jobs may have lost their processes.

    With a process namespace that outlives the container, steps survive its restart.
    """
    found = []
    for worker in workers:
        node = worker.node
        if node is None or not node.busy or node.down or not worker.container or worker.terminating:
            continue
        info = PodInfo.parse(node.comment)
        same_pod = info.podUID == worker.pod.metadata.uid
        if info.podUID and not (same_pod and (steps_survive or info.containerID == worker.container)):
            found.append(worker)
    return found


class Verdict(msgspec.Struct, frozen=True):
    """Which jobs of a suspect are certainly older than its slurmd, and whether the others are certainly not."""

    lost: tuple[Job, ...] = ()
    cleared: bool = False  # nothing was lost: the slurmd of today may be named in the comment
    alone: bool = False  # the lost jobs are all that is on the node


def verdict(
    jobs: Iterable[Job], started: datetime | None, noticed: datetime | None, created: datetime | None = None
) -> Verdict:
    """Compares the age of jobs with that of the slurmd container, which was noticed here at `noticed`.

    The times come from two machines' clocks in whole seconds, so what lies close together is left undecided. A worker
    whose clock is ahead would make its slurmd look younger than it is, and its jobs older; but slurmd cannot have
    started after it was noticed, and that moment is by slurmctld's clock, as the jobs' are. Where it was not noticed in
    time, only jobs from before its pod was created, by the API server's clock, are certainly older. A job that is being
    cleaned up comes to its end by itself.
    """
    alive = [job for job in jobs if "COMPLETING" not in job.job_state and not ALIVE.isdisjoint(job.job_state)]
    starts = {job.job_id: datetime.fromtimestamp(job.start_time.value or 0, UTC) for job in alive}
    if started is None or not alive:
        return Verdict()
    in_time = noticed is not None and noticed <= started + LATE
    latest = min(started, (noticed if in_time else created) or EPOCH)
    lost = tuple(job for job in alive if job.start_time.value and starts[job.job_id] + CLOCKS < latest)
    young = [job for job in alive if starts[job.job_id] > started + CLOCKS]
    return Verdict(lost, cleared=len(young) == len(alive), alone=len(lost) == len(alive))


def unregistered(seen: Seen, absences: Mapping[str, int], leaving: Collection[str]) -> list[Worker]:
    """Ready workers that Slurm has not known for several polls; one at a time, and none when it lost its memory."""
    if not seen.known or seen.amnesia:
        return []
    ready = [worker for worker in seen.workers if worker.ready and worker.name not in leaving]
    lost = [worker for worker in ready if worker.node is None and absences.get(worker.slurm_name, 0) >= ABSENCES]
    return sorted(lost, key=lambda worker: worker.name)[:AT_ONCE]


def amnesia(missing: int, total: int, known: int) -> bool:
    """Whether slurmctld has lost its memory rather than a node: it knows none, or too many of `total` are missing."""
    return known == 0 or missing > max(MISSING_LIMIT * total, 1)


def outgrown(workers: Iterable[Worker], leaving: Collection[str]) -> list[Worker]:
    """Workers that Slurm refuses because the record of an earlier pod promised more than this slurmd has.

    Slurm takes a dynamic node's size only when it makes the record. A pod that made its own record and is refused
    nevertheless is configured wrongly, and starting it afresh would not help.
    """
    return [
        worker
        for worker in workers
        if worker.node is not None
        and refused(worker.node)
        and not worker.terminating
        and worker.name not in leaving
        and (info := PodInfo.parse(worker.node.comment)).podUID
        and info.podUID != worker.pod.metadata.uid
    ]
