"""The job store: which jobs it reads, what it knows of them, and what it says of jobs that it could not read."""

from typing import Any

import msgspec
import pytest

from kubeslurm.slurm.errors import SlurmError, Unreachable
from kubeslurm.slurm.jobs import (
    BY_NODE,
    BY_PARTITION,
    BY_STATE,
    MAX_AGE,
    MAX_READS,
    REREAD,
    REREAD_PENDING,
    JobStore,
)
from kubeslurm.slurm.rest.client import SlurmClient
from kubeslurm.slurm.rest.models import Job, JobState, Number
from kubeslurm.slurm.rest.transport import Transport
from tests.support.clock import HandClock
from tests.unit.slurm.slurmrestd import EMPTY, Slurmrestd


class Queue:
    """slurmctld's jobs, as a client shows them; what single reads find may differ from the list."""

    def __init__(self) -> None:
        self.listed: dict[int, Job] = {}
        self.found: dict[int, Job | SlurmError | None] = {}
        self.reads: list[int] = []
        self.lists = 0
        self.failure: SlurmError | None = None

    def add(self, job_id: int, *state: str, **fields: Any) -> Job:
        self.listed[job_id] = Job(job_id=job_id, job_state=state, **fields)
        return self.listed[job_id]

    def change(self, job_id: int, *state: str, **fields: Any) -> None:
        self.listed[job_id] = msgspec.structs.replace(self.listed[job_id], job_state=state, **fields)

    async def jobs_state(self) -> tuple[JobState, ...]:
        if self.failure is not None:
            raise self.failure
        self.lists += 1
        return tuple(JobState(job_id=job_id, state=job.job_state) for job_id, job in self.listed.items())

    async def job(self, job_id: int) -> Job | None:
        self.reads.append(job_id)
        found = self.found.get(job_id, self.listed.get(job_id))
        if isinstance(found, SlurmError):
            raise found
        return found


def make() -> tuple[JobStore, Queue, HandClock]:
    clock, queue = HandClock(), Queue()
    client: Any = queue
    return JobStore(client, clock=clock), queue, clock


def number(value: int) -> Number:
    return Number(set=True, number=value)


async def test_jobs_that_hold_nodes_are_found_by_node() -> None:
    jobs, queue, _ = make()
    queue.add(1, "RUNNING", nodes="gpu-[0-1]")
    queue.add(2, "RUNNING", "CONFIGURING", nodes="gpu-1")
    queue.add(3, "COMPLETED", "COMPLETING", nodes="gpu-2")
    queue.add(4, "COMPLETED", nodes="gpu-0")
    before = jobs.complete
    await jobs.update()
    assert (before, jobs.complete) == (False, True)
    assert [[job.job_id for job in jobs.on(f"gpu-{n}")] for n in range(4)] == [[1], [1, 2], [3], []]
    assert queue.reads == [1, 2, 3]


async def test_an_answer_is_used_until_it_is_too_old() -> None:
    jobs, queue, clock = make()
    queue.add(1, "RUNNING", nodes="a")
    await jobs.update()
    clock.now += MAX_AGE - 1
    await jobs.update()
    assert queue.lists == 1
    await jobs.update(within=1.0)
    assert queue.lists == 2
    clock.now += MAX_AGE
    await jobs.update()
    assert (queue.lists, queue.reads) == (3, [1])


async def test_a_known_job_is_read_again_after_a_while() -> None:
    jobs, queue, clock = make()
    queue.add(1, "RUNNING", nodes="a", time_limit=number(5))
    await jobs.update()
    queue.change(1, "RUNNING", time_limit=number(9))
    clock.now += REREAD
    await jobs.update()
    assert [job.time_limit.value for job in jobs.on("a")] == [9]


async def test_a_job_that_has_ended_or_was_requeued_leaves_its_nodes() -> None:
    jobs, queue, clock = make()
    for job_id in (1, 2):
        queue.add(job_id, "RUNNING", nodes="a")
    await jobs.update()
    del queue.listed[1]
    queue.change(2, "PENDING", nodes="")
    clock.now += MAX_AGE
    await jobs.update()
    assert jobs.on("a") == []
    assert len(jobs.store) == 0
    assert jobs.complete
    assert jobs.unread_pending == {2}


@pytest.mark.parametrize("found", [None, Job(job_id=1, job_state=("COMPLETED",), nodes="a")])
async def test_a_job_that_ends_between_list_and_read_is_not_missed(found: Job | None) -> None:
    jobs, queue, _ = make()
    queue.add(1, "RUNNING", nodes="a")
    queue.add(2, "SUSPENDED", nodes="a")
    queue.add(3, "PENDING")
    queue.found = dict.fromkeys((1, 2, 3), found)
    await jobs.update(pending=True)
    assert (jobs.complete, jobs.pending_complete) == (True, True)
    assert len(jobs.store) == 0
    assert jobs.unplaced() == frozenset()


async def test_a_job_that_cannot_be_read_makes_the_store_incomplete() -> None:
    jobs, queue, _ = make()
    queue.add(1, "RUNNING", nodes="a")
    queue.add(2, "RUNNING", nodes="b")
    queue.found = {1: Unreachable("no answer")}
    await jobs.update()
    before = jobs.complete
    assert [job.job_id for job in jobs.on("b")] == [2]
    queue.found = {}
    await jobs.update()  # at once: what is incomplete is never recent enough
    assert (before, jobs.complete) == (False, True)


async def test_an_unreadable_hostlist_makes_the_store_incomplete() -> None:
    jobs, queue, _ = make()
    queue.add(1, "RUNNING", nodes="a[1-")
    await jobs.update()
    before = jobs.complete
    assert jobs.on("a1") == []
    queue.change(1, "RUNNING", nodes="a[1-2]")
    await jobs.update()
    assert (before, jobs.complete) == (False, True)
    assert [job.job_id for job in jobs.on("a2")] == [1]


async def test_a_job_without_nodes_is_read_in_every_update() -> None:
    jobs, queue, _ = make()
    queue.add(1, "RUNNING")
    await jobs.update()
    assert jobs.complete
    await jobs.update(within=0.0)
    assert queue.reads == [1, 1]


async def test_without_an_answer_the_update_fails_and_what_was_known_stays() -> None:
    jobs, queue, clock = make()
    queue.add(1, "RUNNING", nodes="a")
    await jobs.update()
    queue.failure = Unreachable("no answer")
    clock.now += MAX_AGE
    with pytest.raises(Unreachable):
        await jobs.update()
    assert [job.job_id for job in jobs.on("a")] == [1]


async def test_a_job_is_unplaced_until_its_nodes_are_read() -> None:
    jobs, queue, _ = make()
    queue.add(1, "SUSPENDED", nodes="a")
    queue.found = {1: Unreachable("no answer")}
    await jobs.update()
    assert jobs.unplaced() == {1}
    queue.found = {}
    await jobs.update()
    assert jobs.unplaced() == frozenset()
    assert [job.job_id for job in jobs.on("a")] == [1]
    queue.change(1, "SUSPENDED", nodes="a[")
    await jobs.still_on(1, "a")
    assert jobs.unplaced() == {1}


async def test_single_reads_are_bounded_and_suspended_jobs_come_first_and_pending_ones_last() -> None:
    jobs, queue, clock = make()
    queue.add(1, "PENDING")
    for job_id in range(2, MAX_READS + 2):
        queue.add(job_id, "RUNNING", nodes="a")
    queue.add(9999, "SUSPENDED", nodes="b")
    await jobs.update(pending=True)
    assert len(queue.reads) == MAX_READS
    assert queue.reads[0] == 9999
    assert (jobs.complete, sorted(jobs.unread_pending)) == (False, [1])
    queue.reads.clear()
    clock.now += MAX_AGE
    await jobs.update(pending=True)
    assert queue.reads == [MAX_READS + 1, 1]
    assert (jobs.complete, jobs.pending_complete) == (True, True)


async def test_unread_pending_jobs_do_not_make_the_jobs_on_nodes_incomplete() -> None:
    jobs, queue, clock = make()
    queue.add(1, "RUNNING", nodes="a")
    for job_id in range(2, MAX_READS + 3):
        queue.add(job_id, "PENDING")
    await jobs.update(pending=True)
    assert (jobs.complete, jobs.pending_complete) == (True, False)
    assert len(jobs.unread_pending) == 2
    await jobs.update(pending=True)
    assert len(queue.reads) == MAX_READS  # no more until the time is over, however often it is asked for
    clock.now += MAX_AGE
    await jobs.update(pending=True)
    assert jobs.pending_complete
    assert len(queue.reads) == MAX_READS + 2


async def test_pending_jobs_cost_nothing_unless_they_are_asked_for() -> None:
    jobs, queue, clock = make()
    queue.add(1, "PENDING", state_reason="Priority")
    await jobs.update()
    assert (queue.reads, jobs.pending_complete, sorted(jobs.unread_pending)) == ([], False, [1])
    await jobs.update(pending=True)
    assert (jobs.store[1].state_reason, jobs.pending_complete) == ("Priority", True)
    clock.now += MAX_AGE
    await jobs.update()
    assert (queue.reads, jobs.pending_complete) == ([1], True)


async def test_the_reason_of_a_pending_job_is_read_again_after_a_while() -> None:
    jobs, queue, clock = make()
    queue.add(1, "PENDING", state_reason="Priority")
    queue.add(2, "PENDING", state_reason="Priority")
    await jobs.update(pending=True)
    queue.change(1, "PENDING", state_reason="Resources")
    clock.now += REREAD_PENDING
    queue.add(3, "PENDING")
    queue.reads.clear()
    await jobs.update(pending=True)
    assert jobs.store[1].state_reason == "Resources"
    assert queue.reads == [3, 1, 2]  # the one that was never read comes first


async def test_listeners_see_a_job_from_its_queue_to_its_end() -> None:
    jobs, queue, clock = make()
    changes: list[tuple[int, tuple[str, ...] | None]] = []
    jobs.store.subscribe(lambda job_id, old, new: changes.append((job_id, new.job_state if new else None)))
    queue.add(1, "PENDING")
    await jobs.update(pending=True)
    clock.now += MAX_AGE
    await jobs.update(pending=True)
    queue.change(1, "RUNNING", nodes="a")
    clock.now += MAX_AGE
    await jobs.update(pending=True)
    del queue.listed[1]
    clock.now += MAX_AGE
    await jobs.update(pending=True)
    assert changes == [(1, ("PENDING",)), (1, ("RUNNING",)), (1, None)]


async def test_a_started_job_that_cannot_be_read_is_not_taken_for_a_pending_one() -> None:
    jobs, queue, clock = make()
    queue.add(1, "PENDING")
    await jobs.update(pending=True)
    queue.change(1, "RUNNING", nodes="a")
    queue.found = {1: Unreachable("no answer")}
    clock.now += MAX_AGE
    await jobs.update(pending=True)
    assert not jobs.complete


async def test_a_pending_job_that_starts_between_list_and_read_holds_its_nodes() -> None:
    jobs, queue, _ = make()
    queue.add(1, "PENDING")
    queue.found = {1: Job(job_id=1, job_state=("RUNNING",), nodes="a")}
    await jobs.update(pending=True)
    assert (jobs.complete, jobs.pending_complete) == (True, True)
    assert [job.job_id for job in jobs.on("a")] == [1]


async def test_jobs_are_found_by_state_and_by_each_of_their_partitions() -> None:
    jobs, queue, _ = make()
    queue.add(1, "PENDING", partition="a,b", nodes="old")
    queue.add(2, "RUNNING", partition="a", nodes="n")
    queue.add(3, "PENDING", "COMPLETING", partition="b", nodes="n")
    await jobs.update(pending=True)

    def found(index: str, value: str) -> list[int]:
        return sorted(job.job_id for job in jobs.store.by(index, value))

    assert found(BY_STATE, "PENDING") == [1, 3]
    assert [found(BY_PARTITION, name) for name in ("a", "b")] == [[1, 2], [1, 3]]
    assert [found(BY_NODE, name) for name in ("n", "old")] == [[2, 3], []]


async def test_the_last_job_on_a_node_determines_its_deadline() -> None:
    jobs, queue, _ = make()
    queue.add(1, "RUNNING", nodes="a,b", start_time=number(0), time_limit=number(1))
    queue.add(2, "RUNNING", nodes="b", start_time=number(60), time_limit=number(2))
    queue.add(3, "RUNNING", nodes="c", start_time=number(0), time_limit=Number(infinite=True))
    await jobs.update()
    assert jobs.deadlines(["a", "b", "c", "d"]) == {
        "a": "1970-01-01T00:01:00Z",
        "b": "1970-01-01T00:03:00Z",
        "c": "9999-12-31T23:59:59Z",
    }


async def test_a_job_is_read_again_before_it_is_said_to_be_still_on_a_node() -> None:
    jobs, queue, _ = make()
    queue.add(1, "RUNNING", nodes="a")
    await jobs.update()
    assert (await jobs.still_on(1, "a")) == queue.listed[1]
    queue.change(1, "RUNNING", nodes="b")
    assert await jobs.still_on(1, "a") is None
    assert [job.job_id for job in jobs.on("b")] == [1]
    queue.change(1, "PENDING", nodes="")
    assert await jobs.still_on(1, "b") is None
    assert jobs.on("b") == []
    del queue.listed[1]
    assert await jobs.still_on(1, "b") is None
    assert len(jobs.store) == 0


async def test_arrays_and_heterogeneous_jobs_are_known_by_the_ids_of_their_parts() -> None:
    server = Slurmrestd()
    parts = {
        "7_[3-9]": {"job_id": 7, "job_state": ["PENDING"], "array_job_id": number(7), "array_task_string": "3-9"},
        "8_2": {"job_id": 8, "job_state": ["RUNNING"], "array_job_id": number(7), "nodes": "a"},
        "12+0": {"job_id": 12, "job_state": ["RUNNING"], "het_job_id": number(12), "nodes": "b"},
        "12+1": {"job_id": 13, "job_state": ["RUNNING"], "het_job_id": number(12), "nodes": "c"},
    }
    rows = [{"job_id": text, "state": job["job_state"]} for text, job in parts.items()]
    server.answers["GET jobs/state/"] = (200, {"jobs": rows, **EMPTY})
    for job in parts.values():
        tasks = [parts["8_2"]] if job["job_id"] == 7 else []  # an array is answered with all of its tasks
        body = msgspec.to_builtins({"jobs": [*tasks, job], **EMPTY})
        server.answers[f"GET job/{job['job_id']}"] = (200, body)
    jobs = JobStore(SlurmClient(Transport(["http://a"], lambda: "token", http=server.http)))
    await jobs.update(pending=True)
    assert (jobs.complete, jobs.pending_complete) == (True, True)
    assert sorted(jobs.store.keys()) == [7, 8, 12, 13]
    assert [job.job_id for node in "abc" for job in jobs.on(node)] == [8, 12, 13]
    assert jobs.store[7].array_task_string == "3-9"
