"""slurmctld in memory, as far as the operator's client can tell, with the truth about jobs and their processes."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import msgspec

from kubeslurm.decide.nodeset.slurm.reasons import foreign_reason
from kubeslurm.slurm import errors, hostlist
from kubeslurm.slurm.rest.models import Job, JobState, Node, Nodes, NodeUpdate, Number
from tests.support.clock import clock

SLURMD_TIMEOUT = 5  # rounds


class FakeSlurm:
    """slurmctld behind the client's interface, with its default ReturnToService."""

    def __init__(self) -> None:
        self.reachable = True
        self.calls: list[str] = []
        self.records: dict[str, Node] = {}
        self.reservations: set[str] = set()
        self.jobs: dict[int, Job] = {}
        self.lost: set[int] = set()  # jobs that slurmctld still believes in, but whose processes are gone
        self.forgotten: dict[int, Job] = {}  # jobs that slurmctld does not know any more, but whose processes are alive
        self.requeued: list[int] = []
        self.cancelled: list[int] = []
        self.silence: dict[str, int] = {}
        self.unreadable: set[int] = set()  # jobs that cannot be read, though they are listed
        # What happens elsewhere when a call arrives, and when its answer is on the way; either may lose the message.
        self.on_call: Callable[[str], object] = lambda _call: None
        self.on_answer: Callable[[str], object] = lambda _call: None
        self._numbers = itertools.count(1)
        self._ahead = 0

    @property
    def time(self) -> int:
        """slurmctld's clock."""
        return clock.now + self._ahead

    @time.setter
    def time(self, value: int) -> None:
        self._ahead = value - clock.now

    def submit(self, *nodes: str) -> int:
        """Starts a job there, as the scheduler would; refused on nodes that take none."""
        assert all(self.is_idle(node) or "MIXED" in self.records[node].state for node in nodes), self.records
        assert not any(self.records[node].drain for node in nodes), "the scheduler does not use drained nodes"
        number = next(self._numbers)
        since = Number(set=True, number=clock.tick())
        self.jobs[number] = Job(
            job_id=number, job_state=("RUNNING",), nodes=hostlist.compress(nodes), start_time=since, requeue=True
        )
        self._settle()
        return number

    def queue(self, *, reason: str = "Resources", partition: str = "all") -> int:
        """Accepts a job that cannot start now."""
        number = next(self._numbers)
        self.jobs[number] = Job(job_id=number, job_state=("PENDING",), state_reason=reason, partition=partition)
        return number

    def forget(self, name: str) -> None:
        """slurmctld comes back from a backup without the node and its jobs, whose processes live on."""
        there = [number for number, job in self.jobs.items() if name in hostlist.expand(job.nodes)]
        self.forgotten |= {number: self.jobs.pop(number) for number in there}
        del self.records[name]
        self._settle()

    def finish(self, number: int) -> None:
        self.jobs.pop(number, None)
        self.forgotten.pop(number, None)
        self._settle()

    def suspend(self, number: int) -> None:
        """Stops a job: its processes stay, and slurmctld shows its nodes as idle."""
        self.jobs[number] = msgspec.structs.replace(self.jobs[number], job_state=("SUSPENDED",))
        self._settle()

    def resume_job(self, number: int) -> None:
        """Lets a suspended job go on."""
        self.jobs[number] = msgspec.structs.replace(self.jobs[number], job_state=("RUNNING",))
        self._settle()

    def leave(self, number: int, node: str) -> None:
        """A job gives up one of its nodes."""
        kept = [each for each in hostlist.expand(self.jobs[number].nodes) if each != node]
        self.jobs[number] = msgspec.structs.replace(self.jobs[number], nodes=hostlist.compress(kept))
        self._settle()

    def after(self, call: str, act: Callable[[], object]) -> None:
        """Somebody else acts once, right after such a call was answered."""

        def answered(answered_call: str) -> None:
            if answered_call == call:
                self.on_answer = lambda _call: None
                act()

        self.on_answer = answered

    def is_idle(self, name: str) -> bool:
        """Whether a job could start on the node now."""
        node = self.records[name]
        usable = not (node.drain or node.down or node.not_responding or node.invalid)
        return "IDLE" in node.state and usable and not node.busy

    def is_draining(self, name: str) -> bool:
        """Whether the node takes no new jobs, but still has some."""
        return self.records[name].drain and self.records[name].busy

    def has_processes(self, node: str) -> bool:
        known = (job for number, job in self.jobs.items() if number not in self.lost)
        return any(node in hostlist.expand(job.nodes) for job in (*known, *self.forgotten.values()))

    def register(self, name: str, new: Node | None = None) -> None:
        """slurmd registers; `new` is what it tells about itself, which counts if there is no record yet.

        It learns that slurmctld does not know its jobs, and ends them.
        """
        self.forgotten = {number: job for number, job in self.forgotten.items() if job.nodes != name}
        known = self.records.get(name)
        if known is not None:
            state = tuple(each for each in known.state if each != "NOT_RESPONDING")
            self.records[name] = msgspec.structs.replace(known, state=state)
        else:
            self.records[name] = msgspec.structs.replace(new or Node(name=name, features=("gpu",)), state=("IDLE",))
        self._settle()

    def stop(self, name: str) -> None:
        """What the preStop hook does."""
        if name in self.records:
            node = self.records[name]
            self._down(name, node.reason if foreign_reason(node) else "slurm-operator: Pod is terminating")

    def ping(self, alive: set[str]) -> None:
        """Nodes that have not answered for a while are taken down by slurmctld itself."""
        self.silence = {name: self.silence.get(name, 0) + 1 for name in self.records if name not in alive}
        for name, rounds in self.silence.items():
            if rounds == SLURMD_TIMEOUT and "NOT_RESPONDING" not in self.records[name].state:
                self._down(name, self.records[name].reason or "Not responding")
                node = self.records[name]
                self.records[name] = msgspec.structs.replace(node, state=(*node.state, "NOT_RESPONDING"))

    def lose(self, name: str) -> None:
        self.lost |= {number for number, job in self.jobs.items() if name in hostlist.expand(job.nodes)}

    def drain(self, name: str, reason: str) -> None:
        """An admin's own act."""
        node = self.records[name]
        self.records[name] = msgspec.structs.replace(node, state=(*node.state, "DRAIN"), reason=reason)

    def resume(self, name: str) -> None:
        """An admin takes the drain back."""
        self._change(name, NodeUpdate.resume())

    async def nodes(self, _since: int | None = None) -> Nodes | None:
        with self._call("nodes"):
            return Nodes(nodes=tuple(self.records.values()), last_update=1)

    async def node(self, name: str) -> Node | None:
        with self._call(f"node {name}"):
            return self.records.get(name)

    async def update_nodes(self, wanted: Iterable[str], update: NodeUpdate) -> None:
        chosen = list(wanted)
        with self._call(f"update {hostlist.compress(chosen)} {update.state or ''}"):
            for name in chosen:
                if name not in self.records:
                    raise errors.NotFound(f"no node {name}")
                if update.comment is not None:
                    self.records[name] = msgspec.structs.replace(self.records[name], comment=update.comment)
                self._change(name, update)
            self._settle()

    async def delete_nodes(self, wanted: Iterable[str]) -> None:
        chosen = list(wanted)
        with self._call(f"delete {hostlist.compress(chosen)}"):
            for name in chosen:
                if name in self.records and self.records[name].busy:
                    raise errors.Refused(2016, "Requested nodes are busy")
                self.records.pop(name, None)

    async def delete_reservation(self, name: str) -> None:
        with self._call(f"delete reservation {name}"):
            self.reservations.discard(name)

    async def jobs_state(self) -> tuple[JobState, ...]:
        with self._call("jobs/state"):
            return tuple(JobState(job_id=number, state=job.job_state) for number, job in self.jobs.items())

    async def job(self, number: int) -> Job | None:
        with self._call(f"job {number}"):
            if number in self.unreadable:
                raise errors.Unreachable("slurmrestd does not answer")
            return self.jobs.get(number)

    async def requeue_job(self, number: int) -> None:
        with self._call(f"requeue {number}"):
            self.requeued.append(number)
            self.finish(number)

    async def cancel_job(self, number: int) -> None:
        with self._call(f"cancel {number}"):
            self.cancelled.append(number)
            self.finish(number)

    async def now(self) -> int:
        with self._call("diag"):
            return self.time

    async def close(self) -> None:
        return

    @contextmanager
    def _call(self, what: str) -> Iterator[None]:
        if not self.reachable:
            raise errors.Unreachable("slurmrestd does not answer")
        self.on_call(what)
        self.calls.append(what)
        yield
        self.on_answer(what)

    def _change(self, name: str, update: NodeUpdate) -> None:
        node = self.records[name]
        match update.state:
            case ("DRAIN",):
                state = (*(each for each in node.state if each != "DRAIN"), "DRAIN")
                reason = node.reason if update.reason is None else update.reason
                since = Number(set=True, number=self.time)
                self.records[name] = msgspec.structs.replace(node, state=state, reason=reason, reason_changed_at=since)
            case ("RESUME",):
                state = tuple("IDLE" if each == "DOWN" else each for each in node.state if each != "DRAIN")
                self.records[name] = msgspec.structs.replace(node, state=state, reason="")
            case ("UNDRAIN",):
                state = tuple(each for each in node.state if each != "DRAIN")
                self.records[name] = msgspec.structs.replace(node, state=state, reason=update.reason or "")
            case ("DOWN",):
                self._down(name, node.reason if update.reason is None else update.reason)

    def _down(self, name: str, reason: str) -> None:
        for number in [number for number, job in self.jobs.items() if name in hostlist.expand(job.nodes)]:
            self.requeued.append(number)
            self.jobs.pop(number)
            self.lost.discard(number)
        node = self.records[name]
        flags = tuple(each for each in node.state if each == "DRAIN")
        self.records[name] = msgspec.structs.replace(node, state=("DOWN", *flags), reason=reason)
        self._settle()

    def _settle(self) -> None:
        """Base states follow the jobs."""
        shown = [job for job in self.jobs.values() if "SUSPENDED" not in job.job_state]
        busy = {name for job in shown for name in hostlist.expand(job.nodes)}
        for name, node in self.records.items():
            flags = tuple(each for each in node.state if each not in ("IDLE", "MIXED"))
            base = () if "DOWN" in flags else ("MIXED",) if name in busy else ("IDLE",)
            self.records[name] = msgspec.structs.replace(node, state=(*base, *flags))
