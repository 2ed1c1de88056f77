"""The jobs of one Slurm cluster that are not over, in a store that all controllers share."""

import asyncio
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from kubeslurm.engine import fan_out
from kubeslurm.engine.store import Store
from kubeslurm.slurm import hostlist
from kubeslurm.slurm.errors import SlurmError
from kubeslurm.slurm.rest.client import SlurmClient
from kubeslurm.slurm.rest.models import Job, JobState

MAX_AGE = 5.0
# Seconds after which a known job is read again: a running one may have another limit, a pending one another reason.
REREAD = 300.0
REREAD_PENDING = 60.0
# Single reads in one update.
MAX_READS = 256
FOREVER = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
ON_NODES = frozenset({"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT"})
PENDING = "PENDING"

# Names of the indices.
BY_NODE = "node"
BY_STATE = "state"
BY_PARTITION = "partition"


class JobStore:
    """Jobs that are pending or hold nodes. `jobs/state` lists them, each is read singly, `GET jobs` is never used.

    Nothing is polled: a caller that needs the jobs awaits `update`, and listeners of `store` hear of changes that it
    finds. Jobs on nodes are read in every update, pending jobs only with `pending=True`, so that a caller that only
    protects nodes does not pay for a long queue. One update makes at most MAX_READS single reads: of suspended jobs
    first, then of others on nodes, then of pending ones. `complete` says whether all jobs on nodes are known with their
    nodes, `pending_complete` whether all pending jobs were read, and `unread_pending` which ones were not. The tasks of
    an array that have not started are one job under the array's id.
    """

    def __init__(self, client: SlurmClient, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.store: Store[int, Job] = Store(
            key=lambda job: job.job_id,
            indices={
                BY_NODE: lambda job: _nodes_of(job) or (),
                BY_STATE: lambda job: job.job_state,
                BY_PARTITION: lambda job: job.partition.split(","),
            },
        )
        self.complete = False
        self.pending_complete = False
        self.unread_pending: frozenset[int] = frozenset()
        self._client = client
        self._clock = clock
        self._lock = asyncio.Lock()
        self._completed_at = float("-inf")
        self._pending_read_at = float("-inf")
        self._read_at: dict[int, float] = {}
        self._nodes: dict[int, frozenset[str] | None] = {}  # of jobs that hold nodes; None: the hostlist is unreadable
        # What the last list said, and the jobs that were found to hold no node when they were read after it.
        self._on_nodes: frozenset[int] = frozenset()
        self._suspended: frozenset[int] = frozenset()
        self._pending: frozenset[int] = frozenset()
        self._off_nodes: set[int] = set()

    async def update(self, *, within: float = MAX_AGE, pending: bool = False) -> None:
        """Makes sure that what is known is no older than that; raises SlurmError when Slurm does not answer.

        Pending jobs that exceed the limit of one update are read by one that is at least `within` seconds later.
        """
        async with self._lock:
            now = self._clock()
            pending = pending and now - self._pending_read_at >= within
            if not pending and now - self._completed_at < within:
                return
            self._take_list(await self._client.jobs_state())
            due = self._due(now)
            reads = due + (self._due_pending(now) if pending else [])
            await fan_out.for_each(reads[:MAX_READS], lambda job_id: self._read(job_id, now), collect=SlurmError)
            unreadable = any(nodes is None for nodes in self._nodes.values())
            known = self._nodes.keys() >= self._on_nodes - self._off_nodes
            self.complete = len(due) <= MAX_READS and known and not unreadable
            self._completed_at = now if self.complete else float("-inf")
            self.unread_pending = frozenset(self._pending - self._off_nodes - self._read_at.keys())
            self.pending_complete = not self.unread_pending
            self._pending_read_at = now if pending else self._pending_read_at

    def on(self, node: str) -> list[Job]:
        """The jobs that hold a node."""
        return list(self.store.by(BY_NODE, node))

    def unplaced(self) -> frozenset[int]:
        """Jobs that hold nodes of which it is not known which ones."""
        return frozenset(job_id for job_id in self._on_nodes - self._off_nodes if self._nodes.get(job_id) is None)

    def deadlines(self, nodes: Iterable[str]) -> dict[str, str]:
        """When the last job on each node must have ended, for nodes that have one."""
        ends = {node: max(map(_end, jobs)) for node in nodes if (jobs := self.on(node))}
        return {node: end.strftime("%Y-%m-%dT%H:%M:%SZ") for node, end in ends.items()}

    async def still_on(self, job_id: int, node: str) -> Job | None:
        """Reads the job again, before an act that ends it; None when it does not hold the node any more."""
        await self._read(job_id, self._clock())
        return self.store.get(job_id) if node in (self._nodes.get(job_id) or ()) else None

    def _take_list(self, states: Iterable[JobState]) -> None:
        """Takes over a list of all jobs; jobs that left their nodes or are over are removed from the store."""
        rows = list(states)
        self._on_nodes = frozenset(row.job_id for row in rows if not ON_NODES.isdisjoint(row.state))
        self._suspended = frozenset(row.job_id for row in rows if "SUSPENDED" in row.state)
        self._pending = frozenset(row.job_id for row in rows if PENDING in row.state) - self._on_nodes
        self._off_nodes.clear()
        for job_id in self._nodes.keys() - self._on_nodes:
            self._forget(job_id)
        for job_id in self._read_at.keys() - self._on_nodes - self._pending:
            self._forget(job_id)

    def _due(self, now: float) -> list[int]:
        """Jobs on nodes that must be read, suspended ones first: they are the jobs that a node does not show."""
        due = [
            job_id for job_id in self._on_nodes if not self._nodes.get(job_id) or now - self._read_at[job_id] >= REREAD
        ]
        return sorted(due, key=lambda job_id: (job_id not in self._suspended, job_id))

    def _due_pending(self, now: float) -> list[int]:
        """Pending jobs that should be read: those never read first, then the ones read longest ago."""
        read_at = {job_id: self._read_at.get(job_id, float("-inf")) for job_id in self._pending}
        due = [job_id for job_id, at in read_at.items() if now - at >= REREAD_PENDING]
        return sorted(due, key=lambda job_id: (read_at[job_id], job_id))

    async def _read(self, job_id: int, now: float) -> None:
        job = await self._client.job(job_id)
        if job is not None and _holds_nodes(job):
            self._off_nodes.discard(job_id)
            self._nodes[job_id] = _nodes_of(job)
        else:
            self._off_nodes.add(job_id)
            self._nodes.pop(job_id, None)
        if job is None or (job_id not in self._nodes and PENDING not in job.job_state):
            self._forget(job_id)
            return
        self._read_at[job_id] = now
        self.store.put(job)

    def _forget(self, job_id: int) -> None:
        self._read_at.pop(job_id, None)
        self._nodes.pop(job_id, None)
        self.store.remove(job_id)


def _holds_nodes(job: Job) -> bool:
    return not ON_NODES.isdisjoint(job.job_state)


def _nodes_of(job: Job) -> frozenset[str] | None:
    """The nodes that a job holds; None when they cannot be read."""
    try:
        return frozenset(hostlist.expand(job.nodes) if _holds_nodes(job) else ())
    except ValueError:
        return None


def _end(job: Job) -> datetime:
    start, limit = job.start_time.value, job.time_limit.value
    if start is None or limit is None:
        return FOREVER
    return datetime.fromtimestamp(min(start + limit * 60, FOREVER.timestamp()), UTC)
