"""What a NodeSet says about itself."""

from typing import Any

import pytest

from kubeslurm.api.meta import Condition
from kubeslurm.api.slinky.nodeset import NodeSet, NodeSetStatus
from kubeslurm.api.slinky.strategy import UpdateStrategy
from kubeslurm.decide.nodeset.facts import Facts
from kubeslurm.decide.nodeset.plan import decide
from kubeslurm.decide.nodeset.removal import Doubt, Objection
from kubeslurm.report.conditions import Finding
from kubeslurm.report.failures import Failure
from kubeslurm.report.nodeset import Outcome, blocked, findings, status
from kubeslurm.report.reasons import Reason
from tests.support.workers import NOW, drained_by_us, facts, host, nodeset, slurmd, worker


def report(given: NodeSet, known: Facts, **outcome: Any) -> dict[str, Finding]:
    plan = decide(given, known)
    return {each.type: each for each in findings(given, known, plan, Outcome(**outcome))}


def test_all_is_well() -> None:
    found = report(nodeset(replicas=2), facts(worker(0), worker(1)))
    assert (found["Ready"].status, found["Ready"].message) == (True, "2 of 2 workers are ready")
    assert not found["Progressing"].status
    assert not found["Degraded"].status


def test_workers_that_slurm_does_not_know_are_not_ready_and_are_told_first() -> None:
    found = report(nodeset(replicas=3), facts(worker(0, absent=True), worker(1, absent=True), worker(2)))["Ready"]
    assert (found.status, found.reason) == (False, "Unregistered")
    assert found.message.startswith("1 of 3 workers are ready, 2 run but are not registered in Slurm; ")


def test_workers_that_are_down_in_slurm_are_not_ready() -> None:
    found = report(nodeset(replicas=2), facts(worker(0, "DOWN"), worker(1)))["Ready"]
    assert (found.status, found.message) == (False, "1 of 2 workers are ready, 1 run but are down in Slurm")


def test_a_drained_worker_and_one_of_a_slurm_that_does_not_answer_stay_ready() -> None:
    assert report(nodeset(replicas=1), facts(worker(0, "IDLE", "DRAIN", reason="bad fan")))["Ready"].status
    assert report(nodeset(replicas=1), facts(worker(0), known=False))["Ready"].status


def test_an_unreachable_slurm_is_named_with_what_is_kept_and_what_to_check() -> None:
    found = report(nodeset(replicas=0), facts(worker(0), slurm_error="connection refused"))
    text = found["Degraded"].message
    assert "Slurm cannot be asked (connection refused)" in text
    assert "1 workers that must go are kept" in text
    assert "check the RestApi" in text


WAITING: dict[str, tuple[dict[str, Any], Facts, str]] = {
    "scale-in": ({"replicas": 0}, facts(worker(0, "MIXED")), "draining 1 worker for scale-in"),
    "update": ({"replicas": 1}, facts(worker(0, "MIXED", revision="old")), "draining 1 worker for the update"),
    "deletion": (
        {"replicas": 2, "meta": {"deletionTimestamp": NOW}},
        facts(worker(0, "MIXED"), worker(1, "MIXED")),
        "draining 2 workers for deletion",
    ),
    "creation": ({"replicas": 2}, facts(worker(0)), "1 workers to create, 0 terminating"),
    "paused": ({"replicas": 1, "paused": True}, facts(worker(0, revision="old")), "set spec.paused to false"),
    "not scheduled": (
        {"replicas": 1},
        facts(worker(0, node="", phase="Pending", ready=False, absent=True)),
        "no Kubernetes node",
    ),
    "not ready": ({"replicas": 1}, facts(worker(0, ready=False, status=slurmd(started=False))), "gpu-0 not ready yet"),
    "not registered": ({"replicas": 1}, facts(worker(0, absent=True)), "not registered in Slurm yet"),
}


@pytest.mark.parametrize(("spec", "known", "text"), WAITING.values(), ids=WAITING)
def test_what_is_awaited_is_said(spec: dict[str, Any], known: Facts, text: str) -> None:
    assert text in report(nodeset(**spec), known)["Progressing"].message


def test_the_first_objection_of_the_gate_is_quoted() -> None:
    why = Objection(Doubt.RUNS_JOBS, "node gpu-0 still runs jobs")
    found = report(nodeset(replicas=0), facts(worker(0, "MIXED")), objections={"gpu-0": why})
    assert found["Progressing"].message.endswith(": node gpu-0 still runs jobs")


def test_a_refused_registration_names_slurms_reason_and_the_remedy() -> None:
    found = report(nodeset(replicas=1), facts(worker(0, "IDLE", "DRAIN", "INVALID_REG", reason="Low RealMemory")))
    assert "(Low RealMemory): make extraConf and the limits agree" in found["Degraded"].message


def test_a_strategy_that_is_not_supported_is_said() -> None:
    given = nodeset(replicas=1, updateStrategy=UpdateStrategy(type="ScheduledUpdate"))
    assert "not supported yet" in report(given, facts(worker(0)))["Degraded"].message


def test_a_failed_write_is_said() -> None:
    failure = Failure(Reason.REJECTED, "exceeded quota")
    found = report(nodeset(replicas=1), facts(), failures=(failure, failure))
    assert found["Degraded"].message == "exceeded quota (and 1 more)"


def test_the_reason_of_a_failure_is_kept() -> None:
    failure = Failure(Reason.REQUEST_FAILED, "deadline passed")
    found = report(nodeset(replicas=1), facts(), failures=(failure,))["Degraded"]
    assert (found.reason, found.message) == ("RequestFailed", "deadline passed")


def test_a_name_that_another_pod_has_is_said() -> None:
    found = report(nodeset(replicas=1), facts(), names_taken=("gpu-0",))["Degraded"]
    assert found.reason == "NodeNameConflict"
    assert found.message == "the Slurm name gpu-0 belongs to another pod: waiting until that pod is gone"


def test_a_nodeset_without_a_controller_keeps_its_counts() -> None:
    """A field that is left out of a server-side apply is deleted."""
    last = NodeSetStatus(replicas=3, readyReplicas=2, slurmIdle=2, ordinalToNode={"0": "host-0"}, selector="a=b")
    tree = blocked(nodeset(status=last), facts(), Reason.CONTROLLER_NOT_FOUND, "no Controller")
    kept = {"replicas": 3, "readyReplicas": 2, "slurmIdle": 2, "ordinalToNode": {"0": "host-0"}, "selector": "a=b"}
    assert {key: tree[key] for key in kept} == kept
    assert tree["observedGeneration"] == 3
    assert {each["reason"] for each in tree["conditions"] if each["type"] == "Degraded"} == {"ControllerNotFound"}


def test_counts_follow_pods_and_slurm() -> None:
    given = nodeset(replicas=5, minReadySeconds=30)
    known = facts(
        worker(0),
        worker(1, "MIXED"),
        worker(2, "DOWN", "DRAIN", ready=False),
        worker(3, revision="old", ready_for=5),
        worker(4, deleting=True),
    )
    tree = status(given, known, decide(given, known), Outcome())
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
    known = facts(worker(0), known=False)
    tree = status(given, known, decide(given, known), Outcome())
    assert (tree["slurmIdle"], tree["slurmAllocated"]) == (7, 2)


def test_the_time_of_a_condition_moves_only_with_its_status() -> None:
    old = Condition(type="Ready", status="True", reason="Ready", lastTransitionTime=NOW.replace(year=2020))
    given = nodeset(replicas=1, status=NodeSetStatus(conditions=(old,)))
    known = facts(worker(0))
    tree = status(given, known, decide(given, known), Outcome())
    assert tree["conditions"][0]["lastTransitionTime"].startswith("2020")


def test_pins_remember_where_ordinals_ran() -> None:
    given = nodeset(replicas=2, pinToNode=True, status=NodeSetStatus(ordinalToNode={"1": "gone", "5": "host-9"}))
    known = facts(worker(0, annotations=drained_by_us("node")), hosts=(host("host-0"), host("host-9")))
    tree = status(given, known, decide(given, known), Outcome())
    assert tree["ordinalToNode"] == {"0": "host-0", "5": "host-9"}


def test_two_nodesets_that_claim_one_name_are_told_so() -> None:
    found = report(nodeset(replicas=1), facts(worker(0), shared_names=("gpu-0",)))
    assert "Slurm node gpu-0 is claimed by pods of several NodeSets" in found["Degraded"].message
