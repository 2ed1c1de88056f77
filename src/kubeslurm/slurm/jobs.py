"""The running jobs of each Slurm cluster: which nodes they hold, since when, until when."""

import asyncio
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import msgspec

from kubeslurm.engine import fan_out
from kubeslurm.engine.key import Key
from kubeslurm.slurm import hostlist
from kubeslurm.slurm.clusters import SlurmCluster
from kubeslurm.slurm.errors import SlurmError
from kubeslurm.slurm.rest.models import Job

EVERY = 5.0
# A running job's limit may be changed, so even an old acquaintance is asked again now and then.
REREAD = 300.0
AT_ONCE = 256
FOREVER = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
ON_NODES = frozenset({"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT"})


class Entry(msgspec.Struct):
    """A job as it was last read, with its nodes spelt out; None when they could not be read."""

    job: Job
    nodes: frozenset[str] | None
    read_at: float


class Ledger:
    """The jobs of one cluster, read one by one as they appear: the full job list is never asked for."""

    def __init__(self, slurm: SlurmCluster, clock: Callable[[], float]) -> None:
        self._slurm = slurm
        self._clock = clock
        self._entries: dict[int, Entry] = {}
        self._suspended: frozenset[int] = frozenset()
        self._ended: set[int] = set()  # listed as running, and over when read a moment later
        self._asked_at = float("-inf")
        self._lock = asyncio.Lock()
        self.complete = False

    async def update(self, *, within: float = EVERY) -> None:
        """Makes sure that the ledger is no older than that; raises SlurmError when Slurm does not answer."""
        async with self._lock:
            now = self._clock()
            if now - self._asked_at < within:
                return
            states = await self._slurm.client.jobs_state()
            running = {each.job_id for each in states if not ON_NODES.isdisjoint(each.state)}
            self._suspended = frozenset(each.job_id for each in states if "SUSPENDED" in each.state)
            self._ended.clear()
            self._entries = {number: entry for number, entry in self._entries.items() if number in running}
            # Suspended ones first: they are the jobs that a node does not show.
            due = sorted((number for number in running if self._is_due(number, now)), key=self._urgency)
            await fan_out.for_each(due[:AT_ONCE], lambda number: self._read(number, now), collect=SlurmError)
            unread = any(entry.nodes is None for entry in self._entries.values())
            self.complete = len(due) <= AT_ONCE and not unread and self._entries.keys() >= running - self._ended
            self._asked_at = now if self.complete else float("-inf")

    def on(self, node: str) -> list[Job]:
        """The jobs that hold a node."""
        return [entry.job for entry in self._entries.values() if entry.nodes is not None and node in entry.nodes]

    def hidden(self, node: str) -> str:
        """Why the node may hold a job that its state does not show; empty when it certainly does not.

        slurmctld shows a node as idle while the only jobs there are suspended, though their processes are still alive.
        """
        for number in self._suspended - self._ended:
            entry = self._entries.get(number)
            if entry is None or entry.nodes is None:
                return f"job {number} is suspended, and it is not known where"
            if node in entry.nodes:
                return f"job {number} is suspended on node {node}"
        return ""

    def deadlines(self, nodes: Iterable[str]) -> dict[str, str]:
        """When the last job on each node must have ended, for nodes that have one."""
        wanted = frozenset(nodes)
        ends: dict[str, datetime] = {}
        for entry in self._entries.values():
            for node in (entry.nodes or frozenset()) & wanted:
                ends[node] = max(ends.get(node, _end(entry.job)), _end(entry.job))
        return {node: end.strftime("%Y-%m-%dT%H:%M:%SZ") for node, end in ends.items()}

    async def still_on(self, job_id: int, node: str) -> Job | None:
        """The job as it is now, if it still holds the node: before an act that ends it, memory is not good enough."""
        await self._read(job_id, self._clock())
        entry = self._entries.get(job_id)
        return entry.job if entry is not None and entry.nodes is not None and node in entry.nodes else None

    async def _read(self, number: int, now: float) -> None:
        job = await self._slurm.client.job(number)
        self._ended.discard(number)
        if job is None or ON_NODES.isdisjoint(job.job_state):
            self._entries.pop(number, None)
            self._ended.add(number)
            return
        try:
            nodes: frozenset[str] | None = frozenset(hostlist.expand(job.nodes))
        except ValueError:
            nodes = None
        self._entries[number] = Entry(job, nodes, now)

    def _is_due(self, number: int, now: float) -> bool:
        entry = self._entries.get(number)
        return entry is None or not entry.nodes or now - entry.read_at >= REREAD

    def _urgency(self, number: int) -> tuple[bool, int]:
        return (number not in self._suspended, number)


class Ledgers:
    """One ledger per cluster, shared by its NodeSets."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ledgers: dict[Key, tuple[SlurmCluster, Ledger]] = {}

    def of(self, slurm: SlurmCluster) -> Ledger:
        known = self._ledgers.get(slurm.key)
        if known is None or known[0] is not slurm:
            known = self._ledgers[slurm.key] = (slurm, Ledger(slurm, self._clock))
        return known[1]


def _end(job: Job) -> datetime:
    start, limit = job.start_time.value, job.time_limit.value
    if start is None or limit is None:
        return FOREVER
    return datetime.fromtimestamp(min(start + limit * 60, FOREVER.timestamp()), UTC)
