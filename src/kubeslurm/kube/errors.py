# ruff: noqa: N818 (the names are the API server's own reasons)
"""Errors of requests to the API server, by cause."""

from typing import Any

import msgspec

from kubeslurm.engine.controller import Retry

TERMINATING_PAUSE = 10.0
"""Seconds for which nothing is created in a namespace that is being deleted."""


class ApiError(Exception):
    """The server answered with an error; `reason` is its CamelCase reason, `message` its sentence."""

    def __init__(self, status: int, reason: str, message: str, *, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.details = details or {}

    def __str__(self) -> str:
        return f"{self.message} ({self.status} {self.reason})" if self.status else f"{self.message} ({self.reason})"


class Transient(ApiError, Retry):
    """The same request may succeed a little later; a reconcile that raises it is tried again."""

    def __init__(
        self, status: int, reason: str, message: str, *, after: float = 0.0, details: dict[str, Any] | None = None
    ) -> None:
        ApiError.__init__(self, status, reason, message, details=details)
        self.after = after


class NotFound(ApiError):
    """The object does not exist."""


class AlreadyExists(ApiError):
    """An object of that name exists already."""


class Conflict(Transient):
    """The object changed since it was read, or a precondition does not hold."""


class Invalid(ApiError):
    """The object violates its schema or an admission rule."""


class Forbidden(ApiError):
    """We lack the right, or a quota or policy forbids it."""


class Gone(ApiError):
    """The resourceVersion or page token is too old."""


class Throttled(Transient):
    """The server asks us to slow down."""


class Unavailable(Transient):
    """No usable answer: connection lost, deadline passed, or an error inside the server."""


class Fenced(Transient):
    """Not sent: leadership is not certain any more, so no write may start."""


class Terminating(Transient):
    """The namespace is being deleted, so nothing can be created in it."""


class Status(msgspec.Struct, frozen=True):
    """The API server's own error object."""

    kind: str = ""
    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: dict[str, Any] | None = None


_BY_STATUS: dict[int, type[ApiError]] = {
    400: Invalid,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: Throttled,
}
_decoder = msgspec.json.Decoder(Status)


def error_from(code: int, body: bytes, *, retry_after: str = "") -> ApiError:
    """The error of an HTTP answer."""
    try:
        status = _decoder.decode(body)
    except msgspec.MsgspecError:
        status = Status(message=body[:500].decode(errors="replace"))
    return error_of(status, code, retry_after=retry_after)


def error_of(status: Status, code: int = 0, *, retry_after: str = "") -> ApiError:
    """The error of a Status object, in an answer or in the middle of a watch."""
    code = code or status.code
    details = status.details or {}
    message = status.message or f"the API server answered {code}"
    kind = Unavailable if code >= 500 else _BY_STATUS.get(code, ApiError)
    if code == 409 and status.reason == "AlreadyExists":
        kind = AlreadyExists
    if code == 403 and any(cause.get("reason") == "NamespaceTerminating" for cause in details.get("causes") or ()):
        return Terminating(code, status.reason, message, after=TERMINATING_PAUSE, details=details)
    if issubclass(kind, Transient):
        after = float(retry_after) if retry_after.isdigit() else float(details.get("retryAfterSeconds") or 0)
        return kind(code, status.reason, message, after=after, details=details)
    return kind(code, status.reason, message, details=details)
