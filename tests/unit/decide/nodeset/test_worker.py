"""Who goes first when workers must go."""

from typing import Any

import pytest

from kubeslurm.api import names
from kubeslurm.decide.nodeset.worker import by_dispensability
from tests.support.workers import worker

COST, DEADLINE, CORDON = names.POD_DELETION_COST, names.POD_DEADLINE, names.POD_CORDON

FIRST_BEFORE_SECOND: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a pod without a node": ({"node": "", "ready": True}, {"node": "host-9", "ready": False}),
    "a pending pod": ({"phase": "Pending"}, {"phase": "Unknown"}),
    "a pod in an unknown phase": ({"phase": "Unknown"}, {"phase": "Running"}),
    "a failed pod before a running one": ({"phase": "Failed"}, {"phase": "Running"}),
    "a pod that is not ready": ({"ready": False}, {"annotations": {COST: "-5"}}),
    "the cheaper pod": ({"annotations": {COST: "-5"}}, {"annotations": {COST: "3"}}),
    "no cost means zero": ({}, {"annotations": {COST: "1"}}),
    "a cost with a plus sign means zero": ({"annotations": {COST: "+9"}}, {"annotations": {COST: "1"}}),
    "a cost with a leading zero means zero": ({"annotations": {COST: "07"}}, {"annotations": {COST: "1"}}),
    "an idle pod before one with a deadline": ({}, {"annotations": {DEADLINE: "2026-11-15T12:00:00Z"}}),
    "the pod that is free sooner": (
        {"annotations": {DEADLINE: "2026-11-15T12:00:00Z"}},
        {"annotations": {DEADLINE: "2026-11-16T12:00:00Z"}},
    ),
    "an idle pod before a busy one whose end is unknown": ({"state": ("IDLE",)}, {"state": ("MIXED",)}),
    "a cordoned pod": ({"annotations": {CORDON: "true"}}, {}),
}


@pytest.mark.parametrize(("first", "second"), FIRST_BEFORE_SECOND.values(), ids=FIRST_BEFORE_SECOND)
@pytest.mark.parametrize("swapped", [False, True])
def test_the_more_dispensable_goes_first(first: dict[str, Any], second: dict[str, Any], swapped: bool) -> None:
    a, b = (worker(1, *fields.get("state", ()), **_without_state(fields)) for fields in (first, second))
    assert by_dispensability([b, a] if swapped else [a, b]) == [a, b]


def _without_state(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != "state"}


def test_the_higher_ordinal_goes_first() -> None:
    workers = [worker(2), worker(10), worker(1)]
    assert [each.name for each in by_dispensability(workers)] == ["gpu-10", "gpu-2", "gpu-1"]


def test_among_daemon_workers_the_one_that_became_ready_last_goes_first() -> None:
    old, young = worker(1, mode="DaemonSet", ready_for=500), worker(2, mode="DaemonSet", ready_for=5)
    assert by_dispensability([old, young]) == [young, old]


def test_among_equals_the_youngest_goes_first() -> None:
    old, young = worker(1, mode="DaemonSet", age=900), worker(2, mode="DaemonSet", age=800)
    assert by_dispensability([old, young]) == [young, old]
