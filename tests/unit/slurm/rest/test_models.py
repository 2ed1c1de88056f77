"""Every field we read exists in the answers of every supported API version, with the meaning we give it."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubeslurm.slurm.rest.models import Job, Node, NodeUpdate, Number

RECORDED = Path(__file__).parent / "recorded"
VERSIONS = sorted(path.stem for path in RECORDED.glob("*.json"))


def recorded(version: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((RECORDED / f"{version}.json").read_text())
    return content


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("answer", "model"), [("nodes", Node), ("job", Job)])
def test_every_field_is_in_the_recorded_answer(version: str, answer: str, model: type[msgspec.Struct]) -> None:
    body = recorded(version)[answer]
    row = (body.get("nodes") or body.get("jobs"))[0]
    assert {field.encode_name for field in msgspec.structs.fields(model)} <= row.keys()
    msgspec.convert(row, model)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_recorded_node_reads_as_it_was(version: str) -> None:
    node = msgspec.convert(recorded(version)["nodes"]["nodes"][0], Node)
    assert node.name == node.hostname == "n1"
    assert node.busy
    assert not node.idle
    assert node.alloc_cpus == 1
    assert node.slurmd_start_time.value


def node(*state: str, reason: str = "", alloc_cpus: int = 0) -> Node:
    return Node(name="n", state=state, reason=reason, alloc_cpus=alloc_cpus)


@pytest.mark.parametrize(
    ("state", "drained", "draining", "busy"),
    [
        (("IDLE",), False, False, False),
        (("IDLE", "DRAIN"), True, False, False),
        (("IDLE", "DRAIN", "DYNAMIC_NORM"), True, False, False),
        (("IDLE", "DRAIN", "NOT_RESPONDING"), True, False, False),
        (("DOWN", "DRAIN"), True, False, False),
        (("IDLE", "DRAIN", "UNDRAIN"), False, False, False),
        (("ALLOCATED", "DRAIN"), False, True, True),
        (("MIXED", "DRAIN"), False, True, True),
        (("IDLE", "DRAIN", "COMPLETING"), False, True, True),
        (("DOWN", "DRAIN", "COMPLETING"), False, True, True),
        (("UNKNOWN", "DRAIN"), False, True, False),
        (("ERROR", "DRAIN"), False, True, False),
        (("FUTURE", "DRAIN"), False, True, False),
        (("DRAIN",), False, True, False),
        ((), False, False, False),
        (("MIXED",), False, False, True),
    ],
)
def test_only_a_positive_word_of_slurm_counts_as_drained(
    state: tuple[str, ...], drained: bool, draining: bool, busy: bool
) -> None:
    seen = node(*state)
    assert (seen.drained, seen.draining, seen.busy) == (drained, draining, busy)


def test_allocated_cores_mean_busy_whatever_the_state_says() -> None:
    assert not node("IDLE", "DRAIN", alloc_cpus=1).drained


@pytest.mark.parametrize("flag", ["DRAIN", "NOT_RESPONDING", "INVALID_REG", "COMPLETING"])
def test_a_node_with_an_obstacle_is_not_idle(flag: str) -> None:
    assert node("IDLE").idle
    assert not node("IDLE", flag).idle


def test_our_reasons_are_known_by_their_prefix() -> None:
    assert node("IDLE", reason="slurm-operator: scale-in").ours
    assert not node("IDLE", reason="disk is bad").ours


def test_updates_say_only_what_changes() -> None:
    assert msgspec.to_builtins(NodeUpdate.drain("x")) == {"state": ("DRAIN",), "reason": "slurm-operator: x"}
    assert msgspec.to_builtins(NodeUpdate.drain("slurm-operator: x"))["reason"] == "slurm-operator: x"
    assert msgspec.to_builtins(NodeUpdate.resume()) == {"state": ("RESUME",)}


@pytest.mark.parametrize(
    ("wire", "value"),
    [
        ({"set": True, "infinite": False, "number": 5}, 5),
        ({"set": True, "infinite": False, "number": 0}, 0),
        ({"set": False, "infinite": False, "number": 0}, None),
        ({"set": False, "infinite": True, "number": 0}, None),
    ],
)
def test_numbers_have_a_value_only_when_set(wire: dict[str, Any], value: int | None) -> None:
    assert msgspec.convert(wire, Number).value == value
