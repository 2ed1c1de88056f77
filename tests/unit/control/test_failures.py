"""The reason that is reported for an error."""

import pytest

from kubeslurm.control import failures
from kubeslurm.control.fan_out import Error
from kubeslurm.kube.errors import ApiError, Conflict, Forbidden, Invalid, Throttled, Unavailable
from kubeslurm.report.reasons import Reason
from kubeslurm.slurm import errors as slurm

CASES: list[tuple[Error, Reason]] = [
    (Invalid(422, "Invalid", "x"), Reason.REJECTED),
    (Forbidden(403, "Forbidden", "x"), Reason.REJECTED),
    (Conflict(409, "Conflict", "x"), Reason.REJECTED),
    (ApiError(405, "MethodNotAllowed", "x"), Reason.REJECTED),
    (Unavailable(0, "Timeout", "x"), Reason.REQUEST_FAILED),
    (Unavailable(503, "ServiceUnavailable", "x"), Reason.REQUEST_FAILED),
    (Throttled(429, "TooManyRequests", "x"), Reason.REQUEST_FAILED),
    (slurm.Unreachable("x"), Reason.SLURM_NOT_REACHABLE),
    (slurm.NotServed("x"), Reason.SLURM_NOT_REACHABLE),
    (slurm.Unauthorized("x"), Reason.SLURM_NOT_REACHABLE),
    (slurm.Refused(2016, "x"), Reason.SLURM_REJECTED),
    (slurm.NotFound("x"), Reason.SLURM_REJECTED),
]


@pytest.mark.parametrize(("error", "reason"), CASES, ids=[type(error).__name__ for error, _ in CASES])
def test_the_type_of_an_error_decides_the_reason(error: Error, reason: Reason) -> None:
    (found,) = failures.of([error])
    assert found.reason is reason
    assert found.message == str(error)
