"""What a worker pod shows, and that nothing is written when nothing changed."""

from typing import Any

import msgspec
import pytest

from kubeslurm.api import names
from kubeslurm.api.meta import Condition
from kubeslurm.decide.nodeset.drain import Hold
from kubeslurm.decide.nodeset.facts import Worker
from kubeslurm.report.worker_pod import View, patch, states
from tests.support.workers import NOW, drained_by_us, host, nodeset, pod, worker

HOLD = Hold("scale-in", "slurm-operator: x")


def view(*, known: bool = True, deadlines: dict[str, str] | None = None, **spec: Any) -> View:
    return View(nodeset=nodeset(**spec), now=NOW, known=known, deadlines=deadlines)


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
    found = patch(with_conditions(worker(1, "MIXED"), "Idle"), None, view())
    assert found is not None
    kinds = {each["type"]: each.get("$patch", "set") for each in found["status"]["conditions"]}
    assert kinds == {"SlurmNodeStateMixed": "set", "SlurmNodeStateIdle": "delete"}
    assert found["metadata"]["labels"] == {names.LABEL_POD_PROTECT: "true"}


def test_nothing_is_written_when_nothing_changed() -> None:
    assert patch(with_conditions(worker(1), "Idle"), None, view(deadlines={})) is None


def test_slurms_reason_is_the_message() -> None:
    found = patch(worker(1, "IDLE", "DRAIN", reason="bad fan"), None, view())
    assert found is not None
    assert {each["message"] for each in found["status"]["conditions"]} == {"bad fan"}


def test_an_unknown_slurm_leaves_conditions_and_protection_alone() -> None:
    busy = with_conditions(worker(1, labels={names.LABEL_POD_PROTECT: "true"}), "Mixed")
    blind = Worker(pod=busy.pod, node=None, host=busy.host)
    assert patch(blind, None, view(known=False)) is None


def test_protection_can_be_switched_off() -> None:
    found = patch(with_conditions(worker(1, "MIXED"), "Mixed"), None, view(workloadDisruptionProtection=False))
    assert found is None


def test_the_cause_of_a_drain_is_on_the_pod() -> None:
    found = patch(with_conditions(worker(1), "Idle"), HOLD, view())
    assert found == {"metadata": {"annotations": drained_by_us("scale-in")}}


def test_a_users_cordon_is_remembered_below_ours() -> None:
    each = with_conditions(worker(1, annotations={names.POD_CORDON: "true"}), "Idle")
    found = patch(each, HOLD, view())
    assert found == {"metadata": {"annotations": {names.POD_CORDON_BY: "scale-in+user"}}}


def test_our_cordon_is_taken_off_when_slurm_shows_no_drain() -> None:
    each = with_conditions(worker(1, annotations=drained_by_us("scale-in")), "Idle")
    gone = {names.POD_CORDON: None, names.POD_CORDON_BY: None}
    assert patch(each, None, view()) == {"metadata": {"annotations": gone}}


def test_our_cordon_stays_while_slurm_still_shows_the_drain() -> None:
    each = with_conditions(
        worker(1, "IDLE", "DRAIN", reason="slurm-operator: x", annotations=drained_by_us("scale-in")), "Idle", "Drain"
    )
    found = patch(each, None, view())
    assert found is None or "annotations" not in found.get("metadata", {})


def test_the_deadline_is_written_and_taken_off() -> None:
    each = with_conditions(worker(1, "MIXED", labels={names.LABEL_POD_PROTECT: "true"}), "Mixed")
    found = patch(each, None, view(deadlines={"gpu-1": "2026-11-16T00:00:00Z"}))
    assert found == {"metadata": {"annotations": {names.POD_DEADLINE: "2026-11-16T00:00:00Z"}}}
    idle = with_conditions(worker(1, annotations={names.POD_DEADLINE: "x"}), "Idle")
    assert patch(idle, None, view(deadlines={})) == {"metadata": {"annotations": {names.POD_DEADLINE: None}}}


def test_the_topology_of_the_kubernetes_node_is_copied_and_an_empty_one_left_out() -> None:
    there = host("host-1", annotations={names.TOPOLOGY_SPEC: "t:s1"})
    found = patch(with_conditions(worker(1, host=there), "Idle"), None, view())
    assert found == {"metadata": {"annotations": {names.TOPOLOGY_SPEC: "t:s1"}}}
    assert patch(with_conditions(worker(1), "Idle"), None, view()) is None


def test_a_terminating_pod_is_left_alone() -> None:
    assert patch(worker(1, deleting=True), HOLD, view()) is None


def test_a_pod_on_the_host_network_learns_its_slurm_name_when_it_is_scheduled() -> None:
    given = pod(1, host_network=True, node="host-1", labels={names.LABEL_POD_HOSTNAME: ""})
    found = patch(Worker(pod=given), None, view(known=False))
    assert found == {"metadata": {"labels": {names.LABEL_POD_HOSTNAME: "host-1"}}}
