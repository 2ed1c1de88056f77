"""What a Kubernetes node shows of a drain in Slurm, and whose acts are left alone."""

from typing import Any

import pytest

from kubeslurm.api import names
from kubeslurm.api.meta import Condition, Tree
from kubeslurm.api.views import Node, Taint
from kubeslurm.decide.node_drain import Mode, change, drain_message
from kubeslurm.decide.nodeset.slurm.drain import HostRules, host_reason
from kubeslurm.decide.nodeset.slurm.reasons import foreign_reason
from tests.support.workers import NOW, host, slurm_node

ANNOTATED = names.SLURM_DRAIN
OURS = Taint(key=ANNOTATED, effect="NoSchedule")
THEIRS = Taint(key="repair", effect="NoSchedule")
ANNOTATION = "/metadata/annotations/kubeslurm.dev~1slurm-drain"
LOW = "Low RealMemory (reported:24105 < 100.00% of configured:32000)"
TAINT_TREE = {"key": ANNOTATED, "effect": "NoSchedule"}

FOREIGN: dict[str, tuple[tuple[str, ...], str, str]] = {
    "a node in service": (("IDLE",), "", ""),
    "an admin's drain": (("MIXED", "DRAIN"), "bad fan", "bad fan"),
    "an admin's down": (("DOWN",), "bad fan", "bad fan"),
    "a drain without a reason": (("IDLE", "DRAIN"), "", "no reason given"),
    "a drain of ours": (("IDLE", "DRAIN"), "slurm-operator: Node (k1) was cordoned", ""),
    "a drain of ours over an admin's": (("DOWN", "DRAIN"), "slurm-operator: x (was: bad fan)", "bad fan"),
    "a node that does not answer": (("DOWN", "NOT_RESPONDING"), "Not responding", ""),
    "a node that Slurm refuses": (("IDLE", "DRAIN", "INVALID_REG"), LOW, ""),
    "a refused node that an admin drained": (("IDLE", "DRAIN", "INVALID_REG"), "bad GPU", "bad GPU"),
}


@pytest.mark.parametrize(("state", "reason", "shown"), FOREIGN.values(), ids=FOREIGN)
def test_only_what_others_decided_is_shown(state: tuple[str, ...], reason: str, shown: str) -> None:
    assert foreign_reason(slurm_node(1, *state, reason=reason)) == shown


def test_all_slurm_nodes_of_the_machine_are_named() -> None:
    nodes = [slurm_node(2, "DOWN", reason="b"), None, slurm_node(1, "IDLE", "DRAIN", reason="a"), slurm_node(3)]
    assert drain_message(nodes) == "gpu-1: a; gpu-2: b"


def annotated(value: str, **fields: Any) -> Node:
    return host("k1", annotations={"other": "x", ANNOTATED: value}, **fields)


OPERATIONS: dict[str, tuple[Node, bool, Mode, list[Tree]]] = {
    "a drain cordons, and says whose cordon it is": (
        host("k1", annotations={"other": "x"}),
        True,
        "Cordon",
        [
            {"op": "add", "path": "/spec/unschedulable", "value": True},
            {"op": "add", "path": ANNOTATION, "value": "Cordon"},
        ],
    ),
    "a node that a user cordoned is not claimed": (
        host("k1", unschedulable=True),
        True,
        "Cordon",
        [{"op": "add", "path": "/metadata/annotations", "value": {ANNOTATED: "Seen"}}],
    ),
    "nor uncordoned later": (
        annotated("Seen", unschedulable=True),
        False,
        "Cordon",
        [{"op": "remove", "path": ANNOTATION}],
    ),
    "a resumed node is uncordoned": (
        annotated("Cordon", unschedulable=True),
        False,
        "Cordon",
        [{"op": "remove", "path": "/spec/unschedulable"}, {"op": "remove", "path": ANNOTATION}],
    ),
    "a user's uncordon is not undone, and the next cordon is the user's": (
        annotated("Cordon"),
        True,
        "Cordon",
        [{"op": "add", "path": ANNOTATION, "value": "Seen"}],
    ),
    "and is forgotten with the drain": (annotated("Cordon"), False, "Cordon", [{"op": "remove", "path": ANNOTATION}]),
    "a drain taints beside other taints": (
        host("k1", annotations={"other": "x"}, taints=(THEIRS,)),
        True,
        "Taint",
        [
            {"op": "add", "path": "/spec/taints/-", "value": TAINT_TREE},
            {"op": "add", "path": ANNOTATION, "value": "Taint"},
        ],
    ),
    "only our taint is removed": (
        annotated("Taint", taints=(THEIRS, OURS)),
        False,
        "Taint",
        [{"op": "remove", "path": "/spec/taints/1"}, {"op": "remove", "path": ANNOTATION}],
    ),
    "another mode undoes what the first did": (
        annotated("Taint", taints=(OURS,)),
        True,
        "Cordon",
        [{"op": "remove", "path": "/spec/taints/0"}, {"op": "remove", "path": ANNOTATION}],
    ),
    "the mildest mode touches nothing": (host("k1"), True, "Condition", []),
    "nothing is done twice": (annotated("Cordon", unschedulable=True), True, "Cordon", []),
    "nothing is done without need": (host("k1", unschedulable=True), False, "Cordon", []),
}


@pytest.mark.parametrize(("node", "drained", "mode", "wanted"), OPERATIONS.values(), ids=OPERATIONS)
def test_what_is_done_to_the_node(node: Node, drained: bool, mode: Mode, wanted: list[Tree]) -> None:
    found = list(change(node, "gpu-1: bad fan" if drained else "", mode, NOW).operations)
    assert found[1:] == wanted
    assert not found or found[0]["op"] == "test"


def test_the_condition_carries_the_reason_and_goes_with_it() -> None:
    (made,) = change(host("k1"), "gpu-1: bad fan", "Condition", NOW).conditions
    assert (made["type"], made["status"], made["message"]) == ("SlurmDrain", "True", "gpu-1: bad fan")
    shown = host("k1", conditions=(Condition(type="SlurmDrain", status="True", message="gpu-1: bad fan"),))
    assert change(shown, "gpu-1: bad fan", "Condition", NOW).conditions == ()
    assert change(shown, "", "Condition", NOW).conditions == ({"type": "SlurmDrain", "$patch": "delete"},)


@pytest.mark.parametrize(
    "node",
    [
        annotated("Cordon", unschedulable=True),
        annotated("Taint", taints=(OURS,)),
        host("k1", conditions=(Condition(type="SlurmDrain", status="True"),)),
    ],
)
def test_what_came_from_slurm_is_not_sent_back_to_it(node: Node) -> None:
    assert host_reason(node, "slurm/gpu-1", HostRules(conditions={"SlurmDrain"}, mirrors_drains=True)) == ""


def test_a_users_cordon_still_drains_while_slurm_drains_too() -> None:
    assert host_reason(annotated("Seen", unschedulable=True), "slurm/gpu-1", HostRules(mirrors_drains=True)) != ""


def test_an_annotation_that_is_not_kept_current_hides_no_cordon() -> None:
    """The feature was switched off; whoever cordons the node now must be heard."""
    assert host_reason(annotated("Cordon", unschedulable=True), "slurm/gpu-1", HostRules()) != ""
