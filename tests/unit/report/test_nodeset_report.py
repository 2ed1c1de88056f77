"""What a NodeSet says about itself."""

from typing import Any

import pytest

from kubeslurm.api.meta import Condition
from kubeslurm.api.slinky.nodeset import NodeSet, NodeSetStatus
from kubeslurm.api.slinky.strategy import UpdateStrategy
from kubeslurm.decide.nodeset.facts import Seen
from kubeslurm.decide.nodeset.plan import Policy, decide
from kubeslurm.report.conditions import Finding
from kubeslurm.report.nodeset import Troubles, findings, status
from tests.support.workers import NOW, drained_by_us, host, nodeset, seen, slurmd, worker


def told(given: NodeSet, view: Seen, **troubles: Any) -> dict[str, Finding]:
    plan = decide(given, view, Policy())
    return {each.type: each for each in findings(given, view, plan, Troubles(**troubles))}


def test_all_is_well() -> None:
    found = told(nodeset(replicas=2), seen(worker(0), worker(1)))
    assert (found["Ready"].status, found["Ready"].message) == (True, "2 of 2 workers are ready")
    assert not found["Progressing"].status
    assert not found["Degraded"].status


def test_an_unreachable_slurm_is_named_with_what_is_kept_and_what_to_check() -> None:
    found = told(nodeset(replicas=0), seen(worker(0), known=False), slurm="connection refused")
    text = found["Degraded"].message
    assert "Slurm cannot be asked (connection refused)" in text
    assert "1 workers that must go are kept" in text
    assert "check the RestApi" in text


WAITING: dict[str, tuple[dict[str, Any], Seen, str]] = {
    "scale-in": ({"replicas": 0}, seen(worker(0, "MIXED")), "draining 1 worker for scale-in"),
    "update": ({"replicas": 1}, seen(worker(0, "MIXED", revision="old")), "draining 1 worker for the update"),
    "deletion": (
        {"replicas": 2, "meta": {"deletionTimestamp": NOW}},
        seen(worker(0, "MIXED"), worker(1, "MIXED")),
        "draining 2 workers for deletion",
    ),
    "creation": ({"replicas": 2}, seen(worker(0)), "1 workers to create, 0 terminating"),
    "paused": ({"replicas": 1, "paused": True}, seen(worker(0, revision="old")), "set spec.paused to false"),
    "not scheduled": (
        {"replicas": 1},
        seen(worker(0, node="", phase="Pending", ready=False, absent=True)),
        "no Kubernetes node",
    ),
    "not ready": ({"replicas": 1}, seen(worker(0, ready=False, status=slurmd(started=False))), "gpu-0 not ready yet"),
    "not registered": ({"replicas": 1}, seen(worker(0, absent=True)), "not registered in Slurm yet"),
}


@pytest.mark.parametrize(("spec", "view", "text"), WAITING.values(), ids=WAITING)
def test_what_is_awaited_is_said(spec: dict[str, Any], view: Seen, text: str) -> None:
    assert text in told(nodeset(**spec), view)["Progressing"].message


def test_the_first_refusal_of_the_gate_is_quoted() -> None:
    found = told(nodeset(replicas=0), seen(worker(0, "MIXED")), refused={"gpu-0": "node gpu-0 still runs jobs"})
    assert found["Progressing"].message.endswith(": node gpu-0 still runs jobs")


def test_a_refused_registration_names_slurms_reason_and_the_remedy() -> None:
    found = told(nodeset(replicas=1), seen(worker(0, "IDLE", "DRAIN", "INVALID_REG", reason="Low RealMemory")))
    assert "(Low RealMemory): make extraConf and the limits agree" in found["Degraded"].message


def test_a_strategy_that_is_not_supported_is_reported() -> None:
    given = nodeset(replicas=1, updateStrategy=UpdateStrategy(type="ScheduledUpdate"))
    assert "not supported yet" in told(given, seen(worker(0)))["Degraded"].message


def test_a_failed_write_is_said() -> None:
    found = told(nodeset(replicas=1), seen(), errors=("exceeded quota", "exceeded quota"))
    assert found["Degraded"].message == "exceeded quota (and 1 more)"


def test_counts_follow_pods_and_slurm() -> None:
    given = nodeset(replicas=5, minReadySeconds=30)
    view = seen(
        worker(0),
        worker(1, "MIXED"),
        worker(2, "DOWN", "DRAIN", ready=False),
        worker(3, revision="old", ready_for=5),
        worker(4, deleting=True),
    )
    tree = status(given, view, decide(given, view, Policy()), Troubles())
    expected = {
        "replicas": 5,
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 2,
        "unavailableReplicas": 3,
        "desired": 5,
        "slurmIdle": 3,
        "slurmAllocated": 1,
        "slurmDown": 1,
        "slurmDrain": 1,
        "observedGeneration": 3,
        "selector": "app.kubernetes.io/instance=gpu,app.kubernetes.io/name=slurmd",
    }
    assert {key: tree[key] for key in expected} == expected


def test_slurms_counts_stay_while_it_cannot_be_asked() -> None:
    given = nodeset(replicas=1, status=NodeSetStatus(slurmIdle=7, slurmAllocated=2))
    tree = status(
        given, seen(worker(0), known=False), decide(given, seen(worker(0), known=False), Policy()), Troubles()
    )
    assert (tree["slurmIdle"], tree["slurmAllocated"]) == (7, 2)


def test_the_time_of_a_condition_moves_only_with_its_status() -> None:
    old = Condition(type="Ready", status="True", reason="Ready", lastTransitionTime=NOW.replace(year=2020))
    given = nodeset(replicas=1, status=NodeSetStatus(conditions=(old,)))
    view = seen(worker(0))
    tree = status(given, view, decide(given, view, Policy()), Troubles())
    assert tree["conditions"][0]["lastTransitionTime"].startswith("2020")


def test_pins_remember_where_ordinals_ran() -> None:
    given = nodeset(replicas=2, pinToNode=True, status=NodeSetStatus(ordinalToNode={"1": "gone", "5": "host-9"}))
    view = seen(worker(0, annotations=drained_by_us("node")), hosts=(host("host-0"), host("host-9")))
    tree = status(given, view, decide(given, view, Policy()), Troubles())
    assert tree["ordinalToNode"] == {"0": "host-0", "5": "host-9"}


def test_two_nodesets_that_claim_one_name_are_told_so() -> None:
    found = told(nodeset(replicas=1), seen(worker(0), shared=("gpu-0",)))
    assert "Slurm node gpu-0 is claimed by pods of several NodeSets" in found["Degraded"].message
