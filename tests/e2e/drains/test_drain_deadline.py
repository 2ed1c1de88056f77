"""A drain deadline ends the jobs of workers that must go, in the way their owner asked for, and no others."""

from collections.abc import Iterator

import pytest

from tests.support.nodeset import Workers, is_protected
from tests.support.slurm import Slurm
from tests.support.waiting import wait_for


@pytest.fixture
def workers(slurm: Slurm) -> Iterator[Workers]:
    found = Workers(slurm)
    yield found
    found.change({"drain": None})


@pytest.mark.parametrize(("policy", "end"), [("Requeue", ("PENDING", 1)), ("Cancel", ("CANCELLED", 0))])
def test_jobs_are_ended_after_the_deadline(workers: Workers, policy: str, end: tuple[str, int]) -> None:
    goes, stays = workers.both()
    staying = workers.run_job(600, f"--nodelist={stays}", "--time=20")
    leaving = workers.run_job(600, f"--nodelist={goes}", "--time=15")
    wait_for("both to be protected", lambda: all(is_protected(pod) for pod in workers.pods().values()))
    workers.change({"drain": {"policy": policy, "deadline": "3s"}, "replicas": 1})
    wait_for("the worker that is free sooner to go", lambda: workers.names() == [stays])
    fate = workers.fate(leaving)
    assert (fate.state, fate.restarts) == end
    fate = workers.fate(staying)
    assert (fate.state, fate.restarts) == ("RUNNING", 0)


def test_without_a_policy_a_deadline_ends_nothing(workers: Workers) -> None:
    workers.change({"drain": {"policy": "Wait", "deadline": "1s"}})
    job = workers.run_job(600, "--nodes=2")
    workers.scale(1)
    wait_for("one to drain", lambda: "draining" in workers.slurm.nodes().values())
    age = workers.age(job)
    wait_for("the deadline to be long over", lambda: workers.age(job) >= age + 5)
    workers.finish(job)
    wait_for("one worker", lambda: len(workers.pods()) == 1)
