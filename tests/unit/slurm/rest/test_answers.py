"""The truth table of slurmrestd's answers."""

import json
from typing import Any

import pytest

from kubeslurm.slurm.errors import NotFound, NotServed, Refused, SlurmError, Unauthorized, Unreachable
from kubeslurm.slurm.rest.answers import failure_of


def body(number: int | None = None, text: str = "text", warnings: list[str] | None = None) -> bytes:
    errors: list[dict[str, Any]] = [] if number is None else [{"error_number": number, "error": text}]
    return json.dumps({"errors": errors, "warnings": [{"description": each} for each in warnings or []]}).encode()


@pytest.mark.parametrize(
    ("method", "status", "content", "verdict"),
    [
        ("GET", 200, body(), None),
        ("GET", 304, b"", None),
        ("GET", 200, body(warnings=["nothing to list"]), None),
        ("POST", 200, body(), None),
        ("POST", 200, body(warnings=["Expected string but got object"]), Refused),
        ("GET", 200, body(0, "No error"), NotFound),
        ("POST", 422, body(2018, "Invalid node name specified"), NotFound),
        ("DELETE", 422, body(2016, "Requested nodes are busy"), Refused),
        ("POST", 422, body(2180, "Invalid node state transition"), Refused),
        ("POST", 422, body(2010, "Access/permission denied"), Refused),
        ("POST", 500, body(9207, "unknown flag"), Refused),
        ("GET", 500, body(-1, "Unspecified error"), Refused),
        ("POST", 200, body(0, "No error"), Refused),
        ("GET", 404, b"Unable to find requested URL endpoint.", NotServed),
        ("GET", 404, b"<html>", NotServed),
        ("GET", 404, body(), NotServed),
        ("GET", 404, body(0, "No error"), NotServed),
        ("GET", 404, body(2018, "Invalid node name specified"), NotFound),
        ("GET", 404, body(2017, "Invalid job id specified"), NotFound),
        ("GET", 401, b"Authentication failure", Unauthorized),
        ("GET", 511, body(1007, "Protocol authentication error"), Unauthorized),
        ("GET", 200, body(1007, "Protocol authentication error"), Unauthorized),
        ("GET", 502, body(1800, "Unable to contact slurm controller"), Unreachable),
        ("GET", 500, body(1802, "receive failure"), Unreachable),
        ("GET", 504, body(5004, "Socket timed out"), Unreachable),
        ("GET", 503, b"upstream is gone", Unreachable),
        ("GET", 200, b"<html>", Unreachable),
        ("GET", 200, b'{"errors": [], "other": "caf\xe9"}', None),
        ("GET", 422, b'{"errors": [{"error_number": 2018, "error": "no node caf\xe9"}]}', NotFound),
        ("GET", 500, body(), Unreachable),
        ("POST", 400, body(), Refused),
    ],
)
def test_each_answer_means_what_slurm_meant(
    method: str, status: int, content: bytes, verdict: type[SlurmError] | None
) -> None:
    failure = failure_of(method, status, content)
    assert (type(failure) if failure else None) == verdict


def test_a_refusal_carries_slurms_number_and_words() -> None:
    failure = failure_of("DELETE", 422, body(2016, "Requested nodes are busy"))
    assert isinstance(failure, Refused)
    assert failure.number == 2016
    assert str(failure) == "Requested nodes are busy (Slurm error 2016)"
