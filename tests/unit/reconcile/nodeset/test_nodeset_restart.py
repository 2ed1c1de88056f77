"""A slurmd that was restarted, and the jobs that may or may not have gone with it."""

import copy
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from kubeslurm.api import names
from kubeslurm.api.kinds import POD
from kubeslurm.api.meta import Tree
from kubeslurm.engine.key import Key
from kubeslurm.slurm.errors import Refused, Unreachable
from tests.support.world import World


def pod(world: World) -> Tree:
    return world.kube.trees[POD.plural, Key("slurm", "gpu-0")]


def set_worker_clock_ahead(world: World, seconds: int) -> None:
    """As if the clock of the machine below gpu-0 had been that far ahead when its slurmd started."""
    tree = copy.deepcopy(pod(world))
    running = tree["status"]["containerStatuses"][0]["state"]["running"]
    started = datetime.fromisoformat(running["startedAt"]) + timedelta(seconds=seconds)
    running["startedAt"] = started.strftime("%Y-%m-%dT%H:%M:%SZ")
    world.kube.put(POD, tree)


async def test_a_new_operator_does_not_judge_by_when_it_looked_first(world: World) -> None:
    """slurmd restarted on a machine whose clock was ahead, and took a job before its comment could be renewed."""
    world.restart_container("gpu-0")
    set_worker_clock_ahead(world, 60)
    job = world.slurm.submit("gpu-0")
    await world.turn()
    assert names.SLURMD_NOTICED in pod(world)["metadata"]["annotations"]
    world.start_operator()
    world.slurm.time += 3600
    await world.turn(3)
    assert job in world.slurm.jobs


async def test_a_slurmd_that_nobody_saw_start_costs_no_job(world: World) -> None:
    """The operator was away while slurmd restarted, and so was any proof of when that was."""
    world.restart_container("gpu-0")
    set_worker_clock_ahead(world, 60)
    job = world.slurm.submit("gpu-0")
    world.start_operator()
    world.slurm.time += 60
    await world.turn(3)
    assert job in world.slurm.jobs
    assert names.SLURMD_NOTICED not in pod(world)["metadata"].get("annotations", {})


async def test_a_pod_that_is_seen_for_the_first_time_may_have_run_for_long(world: World) -> None:
    """As when the operator starts, and its first list comes after it has begun to listen."""
    world.restart_container("gpu-0")
    set_worker_clock_ahead(world, 60)
    job, tree = world.slurm.submit("gpu-0"), world.kube.trees.pop((POD.plural, Key("slurm", "gpu-0")))
    world.start_operator()
    world.kube.put(POD, tree)
    world.slurm.time += 60
    await world.turn(3)
    assert job in world.slurm.jobs


async def test_what_one_operator_put_on_record_lets_the_next_end_a_lost_job(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_args: Any) -> None:
        raise Refused(1, "not now")

    job = world.slurm.submit("gpu-0")
    await world.turn()
    world.restart_container("gpu-0")
    with monkeypatch.context() as patched:
        patched.setattr(world.slurm, "update_nodes", refuse)
        await world.turn()
    assert "not now" in world.message("Degraded")
    world.start_operator()
    world.slurm.time += 3600
    await world.turn(2)
    assert world.slurm.requeued == [job]


async def test_a_lost_job_that_cannot_be_ended_is_reported(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_args: Any) -> None:
        raise Refused(1, "not this job")

    world.slurm.submit("gpu-0")
    world.restart_container("gpu-0")
    world.slurm.records["gpu-0"] = msgspec.structs.replace(world.slurm.records["gpu-0"], state=("MIXED",))
    world.slurm.submit("gpu-0")
    monkeypatch.setattr(world.slurm, "requeue_job", refuse)
    await world.turn()
    assert "not this job" in world.message("Degraded")
    assert world.reason("Degraded") == "SlurmRejected"


async def silent(*_args: Any) -> int:
    raise Unreachable("slurmctld does not tell the time")


async def test_a_restart_that_cannot_be_judged_is_reported(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.slurm.submit("gpu-0")
    world.restart_container("gpu-0")
    monkeypatch.setattr(world.slurm, "now", silent)
    await world.turn()
    assert "slurmctld does not tell the time" in world.message("Degraded")
    assert world.reason("Degraded") == "SlurmNotReachable"


async def test_a_deadline_that_cannot_be_checked_is_reported(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    job = world.slurm.submit("gpu-1")
    world.nodeset(replicas=0, drain={"policy": "Cancel", "deadline": "0s"})
    monkeypatch.setattr(world.slurm, "now", silent)
    await world.turn(3)
    assert "slurmctld does not tell the time" in world.message("Degraded")
    assert world.reason("Degraded") == "SlurmNotReachable"
    assert job in world.slurm.jobs


async def test_slurm_is_asked_for_the_time_once_for_all_workers(world: World) -> None:
    for name in ("gpu-0", "gpu-1"):
        world.slurm.submit(name)
        world.restart_container(name)
    calls = len(world.slurm.calls)
    await world.turn()
    assert world.slurm.calls[calls:].count("diag") == 1
