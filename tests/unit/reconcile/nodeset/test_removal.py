"""The one gate: when it opens, and that there is no other way."""

import ast
from pathlib import Path
from typing import Any

import pytest

import kubeslurm
from kubeslurm.api import names
from kubeslurm.api.kinds import POD
from kubeslurm.decide.nodeset.facts import Worker
from kubeslurm.engine.key import Key
from kubeslurm.kube.objects import decoder_of
from kubeslurm.reconcile.nodeset.removal import ABSENT_EVERY, Outcome, Removal, Request
from tests.support.clock import HandClock
from tests.support.world import CLUSTER, World

# The control plane deletes pods of its own, which never run a job: trials, and slurmctld's on a lost machine.
MAY_DELETE_PODS = {
    "reconcile/nodeset/removal.py",
    "reconcile/controller/objects.py",
    "reconcile/controller/trials.py",
}


def request(world: World, *wanted: str, **fields: Any) -> Request:
    pods = [world.caches.store(POD).get(Key("slurm", name)) for name in wanted]
    workers = tuple(Worker(pod=pod) for pod in pods if pod is not None)
    given: dict[str, Any] = {"owner": "uid", "slurm": world.clusters.of(CLUSTER), "absences": {}} | fields
    return Request(workers=workers, **given)


async def ask(world: World, *wanted: str, **fields: Any) -> Outcome:
    return await Removal(world.kube).remove(request(world, *wanted, **fields))  # type: ignore[arg-type]


async def test_a_drained_node_lets_its_pod_go(world: World) -> None:
    world.slurm.drain("gpu-0", "slurm-operator: x")
    assert (await ask(world, "gpu-0")).removed == ["gpu-0"]


async def test_an_idle_node_that_is_not_drained_keeps_its_pod(world: World) -> None:
    outcome = await ask(world, "gpu-0")
    assert outcome.refused == {"gpu-0": "node gpu-0 of pod gpu-0 is not drained yet (IDLE)"}


async def test_a_job_that_started_after_the_last_poll_keeps_the_pod(world: World) -> None:
    """The snapshot says idle and drained; what counts is what Slurm says now."""
    world.slurm.submit("gpu-0")
    world.slurm.drain("gpu-0", "slurm-operator: x")
    outcome = await ask(world, "gpu-0")
    assert outcome.removed == []
    assert "still runs jobs (MIXED+DRAIN)" in outcome.refused["gpu-0"]


async def test_no_cluster_keeps_the_pod(world: World) -> None:
    assert "no RestApi" in (await ask(world, "gpu-0", slurm=None)).refused["gpu-0"]


async def test_no_answer_keeps_the_pod(world: World) -> None:
    world.slurm.drain("gpu-0", "slurm-operator: x")
    world.slurm.reachable = False
    assert "slurmrestd does not answer" in (await ask(world, "gpu-0")).refused["gpu-0"]


async def test_one_doubtful_worker_does_not_hold_up_the_others(world: World) -> None:
    world.slurm.drain("gpu-1", "slurm-operator: x")
    outcome = await ask(world, "gpu-0", "gpu-1")
    assert (outcome.removed, set(outcome.refused)) == (["gpu-1"], {"gpu-0"})


async def test_a_pod_that_was_replaced_meanwhile_is_not_touched(world: World) -> None:
    world.slurm.drain("gpu-0", "slurm-operator: x")
    wanted = request(world, "gpu-0")
    tree = world.kube.trees[POD.plural, Key("slurm", "gpu-0")]
    tree["metadata"]["uid"] = "another"
    outcome = await Removal(world.kube).remove(wanted)  # type: ignore[arg-type]
    assert (outcome.removed, outcome.refused) == ([], {})


async def test_an_unknown_node_keeps_its_pod_until_several_lists_agree(world: World) -> None:
    del world.slurm.records["gpu-0"]
    assert "several lists" in (await ask(world, "gpu-0", absences={"gpu-0": 2})).refused["gpu-0"]
    assert (await ask(world, "gpu-0", absences={"gpu-0": 3})).removed == ["gpu-0"]


async def test_a_forgotten_node_that_ran_jobs_keeps_its_pod(world: World) -> None:
    del world.slurm.records["gpu-0"]
    tree = world.kube.trees[POD.plural, Key("slurm", "gpu-0")]
    tree["metadata"]["labels"][names.LABEL_POD_PROTECT] = "true"
    outcome = await ask(world, "gpu-0", absences={"gpu-0": 9})
    assert "which ran jobs when it was last heard of: annotate the pod" in outcome.refused["gpu-0"]


async def test_nobody_goes_while_slurmctld_has_lost_its_memory(world: World) -> None:
    world.slurm.records.clear()
    outcome = await ask(world, "gpu-0", absences={"gpu-0": 9}, amnesia=True)
    assert "slurmctld has lost most of its nodes" in outcome.refused["gpu-0"]


async def test_a_suspended_job_keeps_the_pod_though_its_node_looks_idle(world: World) -> None:
    world.slurm.suspend(world.slurm.submit("gpu-0"))
    world.slurm.drain("gpu-0", "slurm-operator: x")
    assert world.slurm.records["gpu-0"].drained
    assert (await ask(world, "gpu-0")).refused == {"gpu-0": "job 1 is suspended on node gpu-0"}


async def test_a_slurmd_that_started_unnoticed_keeps_its_pod(world: World) -> None:
    """The kubelet cannot report: the API shows a container that has not started, Slurm a node that works."""
    tree = world.kube.trees[POD.plural, Key("slurm", "gpu-0")]
    tree["status"] = {"phase": "Pending", "containerStatuses": [{"name": "slurmd", "state": {"waiting": {}}}]}
    world.slurm.submit("gpu-0")
    assert "still runs jobs" in (await ask(world, "gpu-0")).refused["gpu-0"]


async def test_a_node_that_came_back_just_now_keeps_its_pod(world: World) -> None:
    assert (await ask(world, "gpu-0", absences={"gpu-0": 9})).removed == []


async def test_unknown_nodes_go_one_after_the_other(world: World) -> None:
    world.slurm.records.clear()
    clock = HandClock(1000.0)
    gate = Removal(world.kube, clock)  # type: ignore[arg-type]
    absences = {"gpu-0": 9, "gpu-1": 9}
    first = await gate.remove(request(world, "gpu-0", "gpu-1", absences=absences))
    assert len(first.removed) == 1
    assert "one after the other" in next(iter(first.refused.values()))
    clock.now += ABSENT_EVERY
    assert len((await gate.remove(request(world, *first.refused, absences=absences))).removed) == 1


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
async def test_a_pod_that_has_ended_goes_without_slurm(world: World, phase: str) -> None:
    tree = world.kube.trees[POD.plural, Key("slurm", "gpu-0")]
    tree["status"]["phase"] = phase
    assert (await ask(world, "gpu-0", slurm=None)).removed == ["gpu-0"]


async def test_a_pod_whose_slurmd_never_started_goes_without_slurm(world: World) -> None:
    tree = world.kube.trees[POD.plural, Key("slurm", "gpu-0")]
    tree["status"] = {"phase": "Pending", "containerStatuses": [{"name": "slurmd", "state": {"waiting": {}}}]}
    assert (await ask(world, "gpu-0", slurm=None)).removed == ["gpu-0"]


async def test_a_pod_that_started_since_it_was_listed_is_judged_as_it_is_now(world: World) -> None:
    """The watch lags: it shows a pod that has not started, while the server knows better."""
    wanted = request(world, "gpu-0", slurm=None)
    pending = decoder_of(POD).decode(b'{"metadata":{"name":"gpu-0","namespace":"slurm"},"status":{"phase":"Pending"}}')
    stale = Request(owner="uid", workers=(Worker(pod=pending),), slurm=None, absences={})
    outcome = await Removal(world.kube).remove(stale)  # type: ignore[arg-type]
    assert outcome.removed == []
    assert (await Removal(world.kube).remove(wanted)).removed == []  # type: ignore[arg-type]


async def test_a_failing_delete_is_told_and_others_go_on(world: World) -> None:
    for name in ("gpu-0", "gpu-1"):
        world.slurm.drain(name, "slurm-operator: x")
    outcome = await ask(world, "gpu-0", "gpu-1")
    assert sorted(outcome.removed) == ["gpu-0", "gpu-1"]
    assert outcome.errors == ()


def test_no_other_module_deletes_worker_pods() -> None:
    root = Path(kubeslurm.__file__).parent
    found = {str(path.relative_to(root)) for path in root.rglob("*.py") if _deletes_pods(ast.parse(path.read_text()))}
    assert found <= MAY_DELETE_PODS


def _deletes_pods(tree: ast.AST) -> bool:
    """Whether a module calls `.delete(POD, ...)`, or `.delete` with a kind that only run time knows."""
    fixed = {"CONFIGMAP", "SERVICE", "SECRET", "STATEFULSET", "DEPLOYMENT", "CONTROLLER_REVISION", "SERVICE_MONITOR"}
    for call in ast.walk(tree):
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "delete"):
            continue
        kind = call.args[0] if call.args else None
        name = kind.id if isinstance(kind, ast.Name) else kind.attr if isinstance(kind, ast.Attribute) else ""
        if name.isupper() and name not in fixed:
            return True
    return False
