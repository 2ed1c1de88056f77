"""A changed template reaches every worker, one drain each, and no job notices."""

import json
from collections.abc import Iterator

import pytest

from tests.support.nodeset import Workers, leads
from tests.support.slurm import Slurm
from tests.support.waiting import wait_for


@pytest.fixture
def workers(slurm: Slurm) -> Iterator[Workers]:
    found = Workers(slurm)
    yield found
    found.change({"paused": False, "updateStrategy": {"type": "RollingUpdate"}})


def all_replaced(workers: Workers, before: dict[str, str]) -> bool:
    now = workers.uids()
    return set(now) == set(before) and not set(now.values()) & set(before.values())


def test_idle_workers_are_replaced_and_take_the_change(workers: Workers) -> None:
    before = workers.uids()
    workers.change_template()
    wait_for("all to be replaced", lambda: all_replaced(workers, before))
    workers.wait_until_idle(2)
    wait_for("the status", lambda: workers.status()["updatedReplicas"] == 2)


def test_a_busy_worker_is_drained_once_and_replaced_after_its_job(workers: Workers) -> None:
    before = workers.uids()
    idle, busy = workers.both()
    job = workers.run_job(600, f"--nodelist={busy}")
    workers.change_template()
    wait_for("the idle one to be replaced", lambda: workers.uids().get(idle, before[idle]) != before[idle])
    wait_for("the busy one to drain", lambda: workers.slurm.nodes().get(busy) == "draining")
    states = {workers.slurm.nodes().get(busy, "draining") for _ in range(20)}
    assert states == {"draining"}
    assert workers.uid(busy) == before[busy]
    workers.finish(job)
    wait_for("all to be replaced", lambda: all_replaced(workers, before))


def test_a_worker_with_smaller_limits_registers_with_them(workers: Workers) -> None:
    before = workers.uids()
    limits = workers.slurm.get("nodesets.slinky.slurm.net", workers.name)["spec"]["slurmd"]["resources"]["limits"]
    try:
        workers.change({"slurmd": {"resources": {"limits": {"memory": "768Mi"}}}})
        wait_for("all to be replaced", lambda: all_replaced(workers, before))
        workers.wait_until_idle(2)
        assert {memory(workers, name) for name in workers.names()} == {768}
    finally:
        before = workers.uids()
        workers.change({"slurmd": {"resources": {"limits": limits}}})
    wait_for("all to be replaced", lambda: all_replaced(workers, before))


def memory(workers: Workers, node: str) -> int:
    """What jobs may have on a node, in megabytes, as Slurm knows it: what is left of the machine after its limit."""
    shown = json.loads(workers.slurm.run("scontrol", "show", "node", node, "--json"))["nodes"][0]
    return int(shown["real_memory"] - shown["specialized_memory"])


def test_a_paused_update_waits_and_says_so(workers: Workers) -> None:
    before = workers.uids()
    workers.change({"paused": True})
    workers.change_template()
    wait_for("the NodeSet to say so", lambda: "spec.paused" in workers.message("Progressing"))
    assert workers.uids() == before
    workers.change({"paused": False})
    wait_for("all to be replaced", lambda: all_replaced(workers, before))


def test_on_delete_replaces_only_what_the_user_deletes(workers: Workers) -> None:
    before = workers.uids()
    workers.change({"updateStrategy": {"type": "OnDelete"}})
    workers.change_template()
    wait_for("the new revision", lambda: workers.status().get("updatedReplicas") == 0)
    deleted, kept = workers.both()
    workers.slurm.kubectl("delete", "pod", workers.pod(deleted)["metadata"]["name"], "--wait=true")
    workers.wait_until_idle(2)
    after = workers.uids()
    assert after[kept] == before[kept]
    assert after[deleted] != before[deleted]
    wait_for("the status", lambda: workers.status()["updatedReplicas"] == 1)


def test_an_operator_killed_in_the_middle_of_an_update_finishes_it(workers: Workers) -> None:
    before = workers.uids()
    busy = workers.one()
    job = workers.run_job(600, f"--nodelist={busy}")
    workers.change_template()
    wait_for("the busy one to drain", lambda: workers.slurm.nodes().get(busy) == "draining")
    workers.kill_operator()
    wait_for("another operator to lead", lambda: leads(workers.slurm))
    workers.finish(job)
    wait_for("all to be replaced", lambda: all_replaced(workers, before))
