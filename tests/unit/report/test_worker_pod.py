"""What a worker pod shows, and that nothing is written when nothing changed."""

from typing import Any

import msgspec
import pytest

from kubeslurm.api import names
from kubeslurm.api.meta import Condition
from kubeslurm.decide.nodeset.cordon import Cordon
from kubeslurm.decide.nodeset.worker import Worker
from kubeslurm.report import worker_pod
from kubeslurm.report.worker_pod import states
from tests.support.workers import drained_by_us, facts, host, nodeset, pod, worker


def patch(
    each: Worker,
    cordon: Cordon | None = None,
    *,
    known: bool = True,
    job_ends: dict[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any] | None:
    return worker_pod.patch(nodeset(**spec), each, cordon, facts(known=known, job_ends=job_ends))


def with_conditions(each: Worker, *kinds: str) -> Worker:
    shown = tuple(Condition(type=f"SlurmNodeState{kind}", status="True", message="") for kind in kinds)
    status = msgspec.structs.replace(each.pod.status, conditions=(*each.pod.status.conditions, *shown))
    return Worker(pod=msgspec.structs.replace(each.pod, status=status), node=each.node, host=each.host)


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        (("IDLE",), ["Idle"]),
        (("MIXED", "DRAIN"), ["Mixed", "Drain"]),
        (("DOWN", "NOT_RESPONDING"), ["Down", "NotResponding"]),
        (("IDLE", "DYNAMIC_NORM"), ["Idle"]),
        (("ALLOCATED", "COMPLETING", "MAINTENANCE"), ["Allocated", "Completing", "Maintenance"]),
        (("IDLE", "DRAIN", "INVALID_REG"), ["Idle", "Drain", "InvalidReg"]),
        ((), []),
    ],
)
def test_states_become_conditions(state: tuple[str, ...], shown: list[str]) -> None:
    assert states(state or ("STRANGE",)) == tuple(f"SlurmNodeState{each}" for each in shown)


def test_a_new_state_replaces_the_old_one_in_one_patch() -> None:
    found = patch(with_conditions(worker(1, "MIXED"), "Idle"))
    assert found is not None
    kinds = {each["type"]: each.get("$patch", "set") for each in found["status"]["conditions"]}
    assert kinds == {"SlurmNodeStateMixed": "set", "SlurmNodeStateIdle": "delete"}
    assert found["metadata"]["labels"] == {names.LABEL_POD_PROTECT: "true"}


def test_nothing_is_written_when_nothing_changed() -> None:
    assert patch(with_conditions(worker(1), "Idle"), job_ends={}) is None


def test_slurms_reason_is_the_message() -> None:
    found = patch(worker(1, "IDLE", "DRAIN", reason="bad fan"))
    assert found is not None
    assert {each["message"] for each in found["status"]["conditions"]} == {"bad fan"}


def test_an_unknown_slurm_leaves_conditions_and_protection_alone() -> None:
    labels, annotations = {names.LABEL_POD_PROTECT: "true"}, {names.POD_BUSY: "true"}
    busy = with_conditions(worker(1, labels=labels, annotations=annotations), "Mixed")
    blind = Worker(pod=busy.pod, node=None, host=busy.host)
    assert patch(blind, known=False) is None
    assert patch(blind) is None


def test_protection_can_be_switched_off() -> None:
    found = patch(with_conditions(worker(1, "MIXED"), "Mixed"), workloadDisruptionProtection=False)
    assert found is not None
    assert "labels" not in found["metadata"]


@pytest.mark.parametrize("protection", [True, False])
def test_a_pod_remembers_that_it_ran_jobs_until_slurm_says_otherwise(protection: bool) -> None:
    busy = patch(worker(1, "MIXED"), workloadDisruptionProtection=protection)
    assert busy is not None
    assert busy["metadata"]["annotations"] == {names.POD_BUSY: "true"}
    idle = patch(worker(1, annotations={names.POD_BUSY: "true"}), workloadDisruptionProtection=protection)
    assert idle is not None
    assert idle["metadata"]["annotations"] == {names.POD_BUSY: None}


def test_the_cause_of_a_drain_is_on_the_pod() -> None:
    found = patch(with_conditions(worker(1), "Idle"), Cordon(True, "scale-in"))
    assert found == {"metadata": {"annotations": drained_by_us("scale-in")}}


def test_only_the_annotation_that_differs_is_written() -> None:
    each = with_conditions(worker(1, annotations={names.POD_CORDON: "true"}), "Idle")
    found = patch(each, Cordon(True, "scale-in+user"))
    assert found == {"metadata": {"annotations": {names.POD_CORDON_BY: "scale-in+user"}}}
    assert patch(each, Cordon(True)) is None


def test_a_cordon_that_is_over_is_taken_off() -> None:
    each = with_conditions(worker(1, annotations=drained_by_us("scale-in")), "Idle")
    gone = {names.POD_CORDON: None, names.POD_CORDON_BY: None}
    assert patch(each, Cordon(False)) == {"metadata": {"annotations": gone}}


def test_a_cordon_stays_as_it_is_unless_the_plan_says_otherwise() -> None:
    assert patch(with_conditions(worker(1, annotations=drained_by_us("scale-in")), "Idle")) is None


def test_the_deadline_is_written_and_taken_off() -> None:
    labels, annotations = {names.LABEL_POD_PROTECT: "true"}, {names.POD_BUSY: "true"}
    each = with_conditions(worker(1, "MIXED", labels=labels, annotations=annotations), "Mixed")
    found = patch(each, job_ends={"gpu-1": "2026-11-16T00:00:00Z"})
    assert found == {"metadata": {"annotations": {names.POD_DEADLINE: "2026-11-16T00:00:00Z"}}}
    idle = with_conditions(worker(1, annotations={names.POD_DEADLINE: "x"}), "Idle")
    assert patch(idle, job_ends={}) == {"metadata": {"annotations": {names.POD_DEADLINE: None}}}


def test_the_topology_of_the_kubernetes_node_is_copied_and_an_empty_one_left_out() -> None:
    there = host("host-1", annotations={names.TOPOLOGY_SPEC: "t:s1"})
    found = patch(with_conditions(worker(1, host=there), "Idle"))
    assert found == {"metadata": {"annotations": {names.TOPOLOGY_SPEC: "t:s1"}}}
    assert patch(with_conditions(worker(1), "Idle")) is None


def test_a_terminating_pod_is_left_alone() -> None:
    assert patch(worker(1, deleting=True), Cordon(True, "scale-in")) is None


def test_a_pod_on_the_host_network_learns_its_slurm_name_when_it_is_scheduled() -> None:
    given = pod(1, host_network=True, node="host-1", labels={names.LABEL_POD_HOSTNAME: ""})
    found = patch(Worker(pod=given), known=False)
    assert found == {"metadata": {"labels": {names.LABEL_POD_HOSTNAME: "host-1"}}}
