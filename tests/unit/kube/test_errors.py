import pytest

from kubeslurm.engine.controller import Retry
from kubeslurm.kube import errors
from kubeslurm.kube.errors import error_from
from tests.support.fake_apiserver import encode


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (400, "BadRequest", errors.Invalid),
        (401, "Unauthorized", errors.ApiError),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (409, "AlreadyExists", errors.AlreadyExists),
        (409, "Conflict", errors.Conflict),
        (410, "Expired", errors.Gone),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.Throttled),
        (500, "InternalError", errors.Unavailable),
        (503, "ServiceUnavailable", errors.Unavailable),
    ],
)
def test_each_answer_has_an_error_of_its_own(code: int, reason: str, expected: type[errors.ApiError]) -> None:
    error = error_from(code, encode({"kind": "Status", "reason": reason, "message": "because", "code": code}))
    assert type(error) is expected
    assert (error.status, error.reason, error.message) == (code, reason, "because")
    assert str(error) == f"because ({code} {reason})"


def test_only_passing_failures_are_retried_without_an_error_in_the_log() -> None:
    transient = [
        each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, errors.Transient)
    ]
    assert {each.__name__ for each in transient} == {
        "Transient",
        "Conflict",
        "Throttled",
        "Unavailable",
        "Fenced",
        "Terminating",
    }
    assert all(issubclass(each, Retry) for each in transient)


def test_an_answer_that_is_not_a_status_is_quoted() -> None:
    error = error_from(502, b"<html>bad gateway</html>")
    assert isinstance(error, errors.Unavailable)
    assert "bad gateway" in error.message


def test_the_wait_comes_from_the_header_or_from_the_body() -> None:
    header = error_from(429, b"{}", retry_after="3")
    body = error_from(429, encode({"details": {"retryAfterSeconds": 4}}))
    assert isinstance(header, errors.Throttled)
    assert isinstance(body, errors.Throttled)
    assert (header.after, body.after) == (3, 4)


def test_a_namespace_that_is_being_deleted_is_an_error_of_its_own() -> None:
    causes = [{"reason": "NamespaceTerminating", "message": "namespace x is being terminated", "field": "x"}]
    error = error_from(403, encode({"reason": "Forbidden", "message": "no", "details": {"causes": causes}}))
    assert isinstance(error, errors.Terminating)
    assert error.after == errors.TERMINATING_PAUSE
