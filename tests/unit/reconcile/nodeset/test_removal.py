"""The one gate: when it opens, and that there is no other way."""

import ast
from pathlib import Path
from typing import Any

import pytest

import kubeslurm
from kubeslurm.api import names
from kubeslurm.api.kinds import POD
from kubeslurm.decide.nodeset.worker import Worker
from kubeslurm.engine.key import Key
from kubeslurm.kube.objects import decoder_of
from kubeslurm.reconcile.nodeset.removal import ABSENT_EVERY, Removal, Removals, Request
from tests.support.clock import HandClock
from tests.support.world import CLUSTER, World

# The control plane deletes pods of its own, which never run a job: trials, and slurmctld's on a lost machine.
MAY_DELETE_PODS = {
    "reconcile/nodeset/removal.py",
    "reconcile/controller/objects.py",
    "reconcile/controller/trials.py",
}

DELETES = {"delete", "delete_collection"}
NOT_PODS = {
    "CONFIGMAP",
    "SERVICE",
    "SECRET",
    "STATEFULSET",
    "DEPLOYMENT",
    "CONTROLLER_REVISION",
    "SERVICE_MONITOR",
}


def request(world: World, *wanted: str, **fields: Any) -> Request:
    pods = [world.caches.store(POD).get(Key("slurm", name)) for name in wanted]
    workers = tuple(Worker(pod=pod) for pod in pods if pod is not None)
    given: dict[str, Any] = {"owner": "uid", "slurm": world.clusters.of(CLUSTER), "absences": {}} | fields
    return Request(workers=workers, **given)


async def ask(world: World, *wanted: str, **fields: Any) -> Removals:
    """Asks the gate in a pass that has polled Slurm."""
    await world.poll()
    return await Removal(world.kube).remove(request(world, *wanted, **fields))  # type: ignore[arg-type]


def messages(found: Removals) -> dict[str, str]:
    """Why each pod stays."""
    return {name: why.message for name, why in found.objections.items()}


async def test_a_drained_node_lets_its_pod_go(world: World) -> None:
    world.slurm.drain("gpu-0", "slurm-operator: x")
    assert (await ask(world, "gpu-0")).removed == ["gpu-0"]


async def test_an_idle_node_that_is_not_drained_keeps_its_pod(world: World) -> None:
    outcome = await ask(world, "gpu-0")
    assert messages(outcome) == {"gpu-0": "node gpu-0 of pod gpu-0 is not drained yet (IDLE)"}


async def test_a_job_that_started_after_the_last_poll_keeps_the_pod(world: World) -> None:
    """The snapshot says idle and drained; what counts is what Slurm says now."""
    world.slurm.submit("gpu-0")
    world.slurm.drain("gpu-0", "slurm-operator: x")
    outcome = await ask(world, "gpu-0")
    assert outcome.removed == []
    assert "still runs jobs (MIXED+DRAIN)" in messages(outcome)["gpu-0"]


async def test_no_cluster_keeps_the_pod(world: World) -> None:
    assert "no RestApi" in messages(await ask(world, "gpu-0", slurm=None))["gpu-0"]


async def test_no_answer_keeps_the_pod(world: World) -> None:
    world.slurm.drain("gpu-0", "slurm-operator: x")
    world.slurm.reachable = False
    assert "slurmrestd does not answer" in messages(await ask(world, "gpu-0"))["gpu-0"]


async def test_one_doubtful_worker_does_not_hold_up_the_others(world: World) -> None:
    world.slurm.drain("gpu-1", "slurm-operator: x")
    outcome = await ask(world, "gpu-0", "gpu-1")
    assert (outcome.removed, set(outcome.objections)) == (["gpu-1"], {"gpu-0"})


async def test_a_pod_that_was_replaced_meanwhile_is_not_touched(world: World) -> None:
    world.slurm.drain("gpu-0", "slurm-operator: x")
    wanted = request(world, "gpu-0")
    tree = world.kube.trees[POD.plural, Key("slurm", "gpu-0")]
    tree["metadata"]["uid"] = "another"
    outcome = await Removal(world.kube).remove(wanted)  # type: ignore[arg-type]
    assert (outcome.removed, outcome.objections) == ([], {})


async def test_an_unknown_node_keeps_its_pod_until_several_lists_agree(world: World) -> None:
    del world.slurm.records["gpu-0"]
    assert "several lists" in messages(await ask(world, "gpu-0", absences={"gpu-0": 2}))["gpu-0"]
    assert (await ask(world, "gpu-0", absences={"gpu-0": 3})).removed == ["gpu-0"]


async def test_a_forgotten_node_that_ran_jobs_keeps_its_pod(world: World) -> None:
    del world.slurm.records["gpu-0"]
    tree = world.kube.trees[POD.plural, Key("slurm", "gpu-0")]
    tree["metadata"]["labels"][names.LABEL_POD_PROTECT] = "true"
    outcome = await ask(world, "gpu-0", absences={"gpu-0": 9})
    assert "which ran jobs when it was last heard of: annotate the pod" in messages(outcome)["gpu-0"]


async def test_a_forgotten_node_that_ran_jobs_keeps_its_pod_though_evictions_are_allowed(world: World) -> None:
    world.nodeset(replicas=2, workloadDisruptionProtection=False)
    world.slurm.submit("gpu-0")
    await world.turn(2)
    del world.slurm.records["gpu-0"]
    outcome = await ask(world, "gpu-0", absences={"gpu-0": 9})
    assert "which ran jobs when it was last heard of" in messages(outcome)["gpu-0"]


async def test_nobody_goes_while_slurmctld_has_lost_its_state(world: World) -> None:
    world.slurm.records.clear()
    outcome = await ask(world, "gpu-0", absences={"gpu-0": 9}, state_lost=True)
    assert "slurmctld has lost most of its nodes" in messages(outcome)["gpu-0"]


async def test_a_suspended_job_keeps_the_pod_though_its_node_looks_idle(world: World) -> None:
    world.slurm.suspend(world.slurm.submit("gpu-0"))
    world.slurm.drain("gpu-0", "slurm-operator: x")
    assert world.slurm.records["gpu-0"].drained
    assert messages(await ask(world, "gpu-0")) == {"gpu-0": "job 1 is on node gpu-0 (SUSPENDED)"}


@pytest.mark.parametrize("moment", ["jobs/state", "job 1", "node gpu-0"])
async def test_a_job_that_is_suspended_while_the_gate_reads_keeps_the_pod(world: World, moment: str) -> None:
    job = world.slurm.submit("gpu-0")
    world.slurm.drain("gpu-0", "slurm-operator: x")
    await world.poll()
    world.slurm.after(moment, lambda: world.slurm.suspend(job))
    outcome = await Removal(world.kube).remove(request(world, "gpu-0"))  # type: ignore[arg-type]
    assert outcome.removed == []


@pytest.mark.parametrize("moment", ["jobs/state", "job 1", "node gpu-0"])
async def test_a_suspended_job_that_is_resumed_while_the_gate_reads_keeps_the_pod(world: World, moment: str) -> None:
    job = world.slurm.submit("gpu-0")
    world.slurm.drain("gpu-0", "slurm-operator: x")
    world.slurm.suspend(job)
    await world.poll()
    world.slurm.after(moment, lambda: world.slurm.resume_job(job))
    outcome = await Removal(world.kube).remove(request(world, "gpu-0"))  # type: ignore[arg-type]
    assert outcome.removed == []


async def test_a_job_that_is_not_there_any_more_does_not_keep_the_pod(world: World) -> None:
    """What the store of jobs knows of a long job may be minutes old."""
    job = world.slurm.submit("gpu-0", "gpu-1")
    for cluster in world.clusters:
        await cluster.jobs.update()
    world.slurm.leave(job, "gpu-0")
    world.slurm.drain("gpu-0", "slurm-operator: x")
    assert (await ask(world, "gpu-0")).removed == ["gpu-0"]


async def test_a_job_of_which_it_is_not_known_where_it_is_keeps_the_pod(world: World) -> None:
    job = world.slurm.submit("gpu-1")
    world.slurm.drain("gpu-0", "slurm-operator: x")
    world.slurm.unreadable.add(job)
    assert messages(await ask(world, "gpu-0")) == {"gpu-0": "it is not known yet on which nodes job 1 is"}


async def test_a_node_that_was_drained_after_the_jobs_were_listed_keeps_its_pod_for_one_more_pass(world: World) -> None:
    world.slurm.drain("gpu-0", "slurm-operator: x")
    outcome = await Removal(world.kube).remove(request(world, "gpu-0"))  # type: ignore[arg-type]
    assert "jobs are listed once more" in messages(outcome)["gpu-0"]
    assert (await ask(world, "gpu-0")).removed == ["gpu-0"]


async def test_a_slurmd_that_started_unnoticed_keeps_its_pod(world: World) -> None:
    """The kubelet cannot report: the API shows a container that has not started, Slurm a node that works."""
    unstarted(world, "gpu-0")
    world.slurm.submit("gpu-0")
    assert "still runs jobs" in messages(await ask(world, "gpu-0"))["gpu-0"]


async def test_a_node_that_came_back_just_now_keeps_its_pod(world: World) -> None:
    assert (await ask(world, "gpu-0", absences={"gpu-0": 9})).removed == []


async def test_unknown_nodes_go_one_after_the_other(world: World) -> None:
    world.slurm.records.clear()
    clock = HandClock(1000.0)
    gate = Removal(world.kube, clock)  # type: ignore[arg-type]
    absences = {"gpu-0": 9, "gpu-1": 9}
    first = await gate.remove(request(world, "gpu-0", "gpu-1", absences=absences))
    assert len(first.removed) == 1
    assert "one after the other" in next(iter(messages(first).values()))
    clock.now += ABSENT_EVERY
    assert len((await gate.remove(request(world, *first.objections, absences=absences))).removed) == 1


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
async def test_a_pod_that_has_ended_goes_without_slurm(world: World, phase: str) -> None:
    tree = world.kube.trees[POD.plural, Key("slurm", "gpu-0")]
    tree["status"]["phase"] = phase
    assert (await ask(world, "gpu-0", slurm=None)).removed == ["gpu-0"]


def unstarted(world: World, name: str) -> None:
    """The API shows a scheduled pod whose slurmd has not started."""
    tree = world.kube.trees[POD.plural, Key("slurm", name)]
    tree["status"] = {"phase": "Pending", "containerStatuses": [{"name": "slurmd", "state": {"waiting": {}}}]}


async def test_a_pod_whose_slurmd_never_started_goes_as_soon_as_slurm_answers_that_it_does_not_know_it(
    world: World,
) -> None:
    unstarted(world, "gpu-0")
    del world.slurm.records["gpu-0"]
    assert (await ask(world, "gpu-0")).removed == ["gpu-0"]


async def test_a_pod_whose_slurmd_seems_not_to_have_started_stays_while_slurm_cannot_be_asked(world: World) -> None:
    """The kubelet is cut off from the API server, so slurmd may run, and with it a job."""
    unstarted(world, "gpu-0")
    world.slurm.submit("gpu-0")
    assert names.FORCE_DELETE in messages(await ask(world, "gpu-0", slurm=None))["gpu-0"]
    world.slurm.reachable = False
    assert names.FORCE_DELETE in messages(await ask(world, "gpu-0"))["gpu-0"]
    assert world.violations == []


async def test_a_pod_whose_slurmd_seems_not_to_have_started_stays_until_its_node_is_drained(world: World) -> None:
    unstarted(world, "gpu-0")
    assert "not drained" in messages(await ask(world, "gpu-0"))["gpu-0"]
    world.slurm.drain("gpu-0", "slurm-operator: x")
    assert (await ask(world, "gpu-0")).removed == ["gpu-0"]


async def test_a_pod_that_started_since_it_was_listed_is_judged_as_it_is_now(world: World) -> None:
    """The watch lags: it shows a pod that has not started, while the server knows better."""
    wanted = request(world, "gpu-0", slurm=None)
    pending = decoder_of(POD).decode(b'{"metadata":{"name":"gpu-0","namespace":"slurm"},"status":{"phase":"Pending"}}')
    stale = Request(owner="uid", workers=(Worker(pod=pending),), slurm=None, absences={})
    outcome = await Removal(world.kube).remove(stale)  # type: ignore[arg-type]
    assert outcome.removed == []
    assert (await Removal(world.kube).remove(wanted)).removed == []  # type: ignore[arg-type]


async def test_several_drained_workers_go_at_once(world: World) -> None:
    for name in ("gpu-0", "gpu-1"):
        world.slurm.drain(name, "slurm-operator: x")
    outcome = await ask(world, "gpu-0", "gpu-1")
    assert sorted(outcome.removed) == ["gpu-0", "gpu-1"]
    assert outcome.errors == ()


def test_no_other_module_deletes_worker_pods() -> None:
    root = Path(kubeslurm.__file__).parent
    found = {str(path.relative_to(root)) for path in root.rglob("*.py") if _may_delete_pods(path.read_text())}
    assert found == MAY_DELETE_PODS


@pytest.mark.parametrize(
    "call",
    [
        "kube.delete(POD, key)",
        "kube.delete(kinds.POD, key)",
        "kube.delete(kind=POD, key=key)",
        "kube.delete(key=key, kind=kind)",
        "kube.delete(kind, key)",
        "kube.delete(obj.kind, key)",
        "kube.delete(KINDS[0], key)",
        "kube.delete(*arguments)",
        "kube.delete(**arguments)",
        "delete = kube.delete",
        "for_each(keys, partial(kube.delete, POD))",
        'getattr(kube, "delete")(POD, key)',
        "kube.delete_collection(POD)",
    ],
)
def test_the_guard_sees_every_way_to_delete_a_pod(call: str) -> None:
    assert _may_delete_pods(call)


@pytest.mark.parametrize(
    "call",
    [
        "kube.delete(SECRET, key)",
        "kube.delete(kind=kinds.SERVICE, key=key)",
        "file.delete()",
        "slurm.client.delete_nodes(nodes)",
    ],
)
def test_the_guard_lets_other_kinds_be_deleted(call: str) -> None:
    assert not _may_delete_pods(call)


def _may_delete_pods(source: str) -> bool:
    """Whether code uses `.delete` of anything other than a kind that is named there and is not a pod."""
    tree = ast.parse(source)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    harmless = {id(call.func) for call in calls if _kind(call) in NOT_PODS or not (call.args or call.keywords)}
    return any(
        (isinstance(node, ast.Attribute) and node.attr in DELETES and id(node) not in harmless)
        or (isinstance(node, ast.Constant) and node.value in DELETES and _is_looked_up(tree, node))
        for node in ast.walk(tree)
    )


def _kind(call: ast.Call) -> str:
    """The constant that a call has as its kind; empty when only run time knows it."""
    named = [keyword.value for keyword in call.keywords if keyword.arg == "kind"]
    kind = next(iter((*call.args, *named)), None)
    return kind.id if isinstance(kind, ast.Name) else kind.attr if isinstance(kind, ast.Attribute) else ""


def _is_looked_up(tree: ast.AST, name: ast.Constant) -> bool:
    """Whether a text is the name of an attribute that is looked up at run time."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
    return any(call.func.id == "getattr" and name in call.args for call in calls if isinstance(call.func, ast.Name))
