"""Every field we read exists in the answers of every supported API version, with the meaning we give it."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubeslurm.slurm.rest.models import Job, Node, NodeUpdate, Number

RECORDED = Path(__file__).parent / "recorded"
VERSIONS = sorted(path.stem for path in RECORDED.glob("*.json"))
# The recordings are abridged. Slurm has this field in all versions; tests/slurm reads it from the real one.
NOT_RECORDED = {"tres_req_str"}


def recorded(version: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((RECORDED / f"{version}.json").read_text())
    return content


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("answer", "model"), [("nodes", Node), ("job", Job)])
def test_every_field_is_in_the_recorded_answer(version: str, answer: str, model: type[msgspec.Struct]) -> None:
    body = recorded(version)[answer]
    row = (body.get("nodes") or body.get("jobs"))[0]
    assert {field.encode_name for field in msgspec.structs.fields(model)} - NOT_RECORDED <= row.keys()
    msgspec.convert(row, model)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_recorded_node_reads_as_it_was(version: str) -> None:
    node = msgspec.convert(recorded(version)["nodes"]["nodes"][0], Node)
    assert node.name == "n1"
    assert node.busy
    assert node.alloc_cpus == 1
    assert node.slurmd_start_time.value


@pytest.mark.parametrize("version", VERSIONS)
def test_a_recorded_job_reads_as_it_was(version: str) -> None:
    job = msgspec.convert(recorded(version)["job"]["jobs"][0], Job)
    assert (job.job_id, job.array_job_id.value, job.array_task_id.value) == (2, 1, 1)
    assert (job.job_state, job.state_reason, job.nodes) == (("RUNNING",), "None", "n1")
    assert (job.user_name, job.partition, job.priority.value) == ("root", "all", 1)
    assert (job.node_count.value, job.cpus.value) == (1, 1)
    assert job.submit_time.value
    assert job.time_limit.infinite


def node(*state: str, reason: str = "", alloc_cpus: int = 0) -> Node:
    return Node(name="n", state=state, reason=reason, alloc_cpus=alloc_cpus)


@pytest.mark.parametrize(
    ("state", "drain", "drained", "busy"),
    [
        (("IDLE",), False, False, False),
        (("IDLE", "DRAIN"), True, True, False),
        (("IDLE", "DRAIN", "DYNAMIC_NORM"), True, True, False),
        (("IDLE", "DRAIN", "NOT_RESPONDING"), True, True, False),
        (("DOWN", "DRAIN"), True, True, False),
        (("IDLE", "DRAIN", "UNDRAIN"), False, False, False),
        (("ALLOCATED", "DRAIN"), True, False, True),
        (("MIXED", "DRAIN"), True, False, True),
        (("IDLE", "DRAIN", "COMPLETING"), True, False, True),
        (("DOWN", "DRAIN", "COMPLETING"), True, False, True),
        (("UNKNOWN", "DRAIN"), True, False, False),
        (("ERROR", "DRAIN"), True, False, False),
        (("FUTURE", "DRAIN"), True, False, False),
        (("DRAIN",), True, False, False),
        ((), False, False, False),
        (("MIXED",), False, False, True),
    ],
)
def test_a_node_is_drained_only_if_slurm_says_that_it_is_empty(
    state: tuple[str, ...], drain: bool, drained: bool, busy: bool
) -> None:
    found = node(*state)
    assert (found.drain, found.drained, found.busy) == (drain, drained, busy)


def test_allocated_cores_mean_busy_whatever_the_state_says() -> None:
    assert not node("IDLE", "DRAIN", alloc_cpus=1).drained


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
