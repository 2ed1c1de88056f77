"""A changed template reaches every worker, one drain each, and no job notices."""

import itertools
from collections.abc import Iterator

import pytest

from tests.support.nodeset import Workers, leads
from tests.support.slurm import Slurm
from tests.support.waiting import wait_for

WEIGHTS = itertools.count(10)


@pytest.fixture
def workers(slurm: Slurm) -> Iterator[Workers]:
    found = Workers(slurm)
    yield found
    found.change({"paused": False, "updateStrategy": {"type": "RollingUpdate"}})
    found.wait_until_idle(2)


def update(workers: Workers) -> None:
    workers.change({"extraConf": f"Weight={next(WEIGHTS)}"})


def all_replaced(workers: Workers, before: dict[str, str]) -> bool:
    now = workers.uids()
    return set(now) == set(before) and not set(now.values()) & set(before.values())


def test_idle_workers_are_replaced_and_take_the_change(workers: Workers) -> None:
    before = workers.uids()
    update(workers)
    wait_for("all to be replaced", lambda: all_replaced(workers, before))
    workers.wait_until_idle(2)
    wait_for("the status", lambda: workers.status()["updatedReplicas"] == 2)


def test_a_busy_worker_is_drained_once_and_replaced_after_its_job(workers: Workers) -> None:
    before = workers.uids()
    job = workers.run_job(600, "--nodelist=worker-1")
    update(workers)
    wait_for(
        "the idle one to be replaced", lambda: workers.uids().get("worker-0", before["worker-0"]) != before["worker-0"]
    )
    wait_for("the busy one to drain", lambda: workers.slurm.nodes().get("worker-1") == "draining")
    states = {workers.slurm.nodes().get("worker-1", "draining") for _ in range(20)}
    assert states == {"draining"}
    workers.finish(job)
    wait_for("all to be replaced", lambda: all_replaced(workers, before))


def test_a_worker_with_smaller_limits_registers_with_them(workers: Workers) -> None:
    before = workers.uids()
    limits = workers.slurm.get("nodesets.slinky.slurm.net", workers.name)["spec"]["slurmd"]["resources"]["limits"]
    try:
        workers.change({"slurmd": {"resources": {"limits": {"memory": "768Mi"}}}})
        wait_for("all to be replaced", lambda: all_replaced(workers, before))
        workers.wait_until_idle(2)
        shown = workers.slurm.run("scontrol", "show", "node", "worker-0")
        assert "INVALID" not in shown
    finally:
        before = workers.uids()
        workers.change({"slurmd": {"resources": {"limits": limits}}})
    wait_for("all to be replaced", lambda: all_replaced(workers, before))


def test_a_paused_update_waits_and_says_so(workers: Workers) -> None:
    before = workers.uids()
    workers.change({"paused": True})
    update(workers)
    wait_for("the NodeSet to say so", lambda: "spec.paused" in workers.message("Progressing"))
    assert workers.uids() == before
    workers.change({"paused": False})
    wait_for("all to be replaced", lambda: all_replaced(workers, before))


def test_on_delete_replaces_only_what_the_user_deletes(workers: Workers) -> None:
    before = workers.uids()
    workers.change({"updateStrategy": {"type": "OnDelete"}})
    update(workers)
    wait_for("the new revision", lambda: workers.status().get("updatedReplicas") == 0)
    workers.slurm.kubectl("delete", "pod", f"{workers.name}-0", "--wait=true")
    workers.wait_until_idle(2)
    after = workers.uids()
    assert after["worker-1"] == before["worker-1"]
    wait_for("the status", lambda: workers.status()["updatedReplicas"] == 1)


def test_an_operator_killed_in_the_middle_of_an_update_finishes_it(workers: Workers) -> None:
    before = workers.uids()
    job = workers.run_job(600, "--nodelist=worker-1")
    update(workers)
    wait_for("the busy one to drain", lambda: workers.slurm.nodes().get("worker-1") == "draining")
    workers.kill_operator()
    wait_for("another operator to lead", lambda: leads(workers.slurm))
    workers.finish(job)
    wait_for("all to be replaced", lambda: all_replaced(workers, before))
