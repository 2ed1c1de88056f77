from typing import Any, cast

import pytest

from kubeslurm.local.errors import LocalError
from tests.chaos.jobs import Jobs
from tests.support.nodeset import Fate, Workers


class FakeSlurm:
    """Takes jobs, unless it is away, and notes what it is told."""

    def __init__(self) -> None:
        self.away = False
        self.told: list[tuple[str, ...]] = []

    def submit(self, *_words: str) -> int:
        if self.away:
            raise LocalError("no answer")
        return 7

    def run(self, *command: str, check: bool = True) -> str:
        self.told.append(command)
        return ""


class FakeWorkers:
    def __init__(self) -> None:
        self.slurm = FakeSlurm()
        self.seen: dict[int, Fate] = {}

    def fates(self) -> dict[int, Fate]:
        return self.seen


@pytest.fixture
def workers() -> FakeWorkers:
    return FakeWorkers()


@pytest.fixture
def jobs(workers: FakeWorkers) -> Jobs:
    log: list[str] = []
    made = Jobs(cast("Workers", workers), log.append, lambda end: f"the story, {end}")
    assert made.submit(5, 1, "x1") == 7
    return made


def fate(state: str, restarts: int = 0, **fields: Any) -> Fate:
    return Fate(state, restarts, fields.get("nodes", "x1-0"), fields.get("sluid", "s1"))


@pytest.mark.parametrize(
    ("hurt", "told"),
    [
        (fate("PENDING", 1), "job 7 was restarted 1 times, not 0"),
        (fate("RUNNING", sluid="s2"), "job 7 has run 2 times, excused 0"),
        (fate("NODE_FAIL"), "job 7 is NODE_FAIL"),
        (fate("CANCELLED"), "job 7 is CANCELLED"),
    ],
)
def test_a_job_that_was_hurt_is_told_with_the_story(workers: FakeWorkers, jobs: Jobs, hurt: Fate, told: str) -> None:
    workers.seen[7] = fate("RUNNING")
    jobs.check()
    workers.seen[7] = hurt
    with pytest.raises(AssertionError, match=f"the story, {told}"):
        jobs.check()


def test_a_restart_that_the_driver_answers_for_is_no_failure(workers: FakeWorkers, jobs: Jobs) -> None:
    jobs.excuse()
    workers.seen[7] = fate("PENDING", 1)
    assert not jobs.all_over()
    assert workers.slurm.told == [("scontrol", "update", "jobid=7", "starttime=now", "partition=all")]
    workers.seen[7] = fate("COMPLETED", 1, sluid="s2")
    assert jobs.all_over()
    assert jobs.lost() == []


def test_a_job_that_must_be_safe_is_not_excused_with_the_others(workers: FakeWorkers, jobs: Jobs) -> None:
    jobs.excuse(but=[7])
    workers.seen[7] = fate("PENDING", 1)
    with pytest.raises(AssertionError):
        jobs.check()


def test_jobs_of_others_and_a_slurmctld_that_is_away_do_not_matter(workers: FakeWorkers, jobs: Jobs) -> None:
    workers.seen[99] = fate("NODE_FAIL")
    jobs.check()
    workers.slurm.away = True
    assert jobs.submit(5, 1) is None
    assert jobs.waiting() == jobs.waiting("x1") == [7]
    assert jobs.waiting("x2") == []


def test_suspended_jobs_count_as_being_on_their_node_and_are_resumed_at_the_end(
    workers: FakeWorkers, jobs: Jobs
) -> None:
    workers.seen[7] = fate("SUSPENDED", nodes="x1-[0-1]")
    assert jobs.on("x1-1") == [7]
    assert jobs.on("x1-2") == []
    assert not jobs.all_over()
    assert workers.slurm.told == [("scontrol", "resume", "7")]
