"""What an answer of slurmrestd means: the HTTP status alone does not tell."""

from typing import TypeVar

import msgspec

from kubeslurm.slurm.errors import NotFound, NotServed, Refused, SlurmError, Unauthorized, Unreachable, WrongCluster

T = TypeVar("T")

UNKNOWN_NODE = 2018
UNKNOWN_JOB = 2017
BAD_TRANSITION = 2180
BAD_CREDENTIAL = 1007
ALREADY_OVER = 2021
# slurmrestd cannot reach slurmctld, or slurmctld shuts down or hangs.
_NO_CONTROLLER = frozenset({*range(1800, 1810), 5004})
# slurmrestd cannot reach slurmdbd, or slurmdbd not its database.
_NO_DATABASE = frozenset({7000, 7008})
_MISSING = frozenset({UNKNOWN_NODE, UNKNOWN_JOB})


class Fault(msgspec.Struct, frozen=True):
    """One entry of `errors` or `warnings`."""

    error_number: int = 0
    error: str = ""
    description: str = ""
    source: str = ""

    @property
    def text(self) -> str:
        return ": ".join(dict.fromkeys(part for part in (self.error, self.description) if part)) or "no reason given"


class Slurm(msgspec.Struct, frozen=True):
    """The Slurm that a slurmrestd belongs to."""

    cluster: str = ""


class Meta(msgspec.Struct, frozen=True):
    """Who answers."""

    slurm: Slurm = Slurm()


class Envelope(msgspec.Struct, frozen=True):
    """What every answer has beside its payload."""

    meta: Meta = Meta()
    errors: tuple[Fault, ...] = ()
    warnings: tuple[Fault, ...] = ()


def failure_of(method: str, status: int, body: bytes, cluster: str = "") -> SlurmError | None:
    """The failure that an answer stands for; None when the call did what was asked, in the named cluster."""
    envelope = _envelope(body)
    # Slurm writes names of clusters in lower case.
    if envelope and cluster and envelope.meta.slurm.cluster.lower() not in ("", cluster.lower()):
        return WrongCluster(f"cluster {envelope.meta.slurm.cluster} answered instead of {cluster}")
    return _failure(method, status, envelope)


def _failure(method: str, status: int, envelope: Envelope | None) -> SlurmError | None:
    if status in (401, 403, 511):
        return Unauthorized(_first(envelope, "Slurm did not accept the token"))
    if status == 404 and not (envelope and envelope.errors and envelope.errors[0].error_number in _MISSING):
        return NotServed(_first(envelope, "slurmrestd does not serve this address"))
    if envelope is None:
        return None if status == 304 else Unreachable(f"slurmrestd answered {status} without a readable body")
    if envelope.errors:
        return _from_fault(method, status, envelope.errors[0])
    if status >= 500:
        return Unreachable(f"slurmrestd answered {status}")
    if status >= 400:
        return Refused(0, f"slurmrestd answered {status}")
    # Slurm ignores a field of the wrong type, with a warning and status 200: the write is not what was asked for.
    if method != "GET" and envelope.warnings:
        return Refused(0, f"Slurm ignored a part of the request: {envelope.warnings[0].text}")
    return None


def decode(body: bytes, kind: type[T]) -> T:
    """The body as a struct; a byte that is not UTF-8 becomes a replacement character."""
    try:
        return msgspec.json.decode(body, type=kind)
    except UnicodeDecodeError:
        # Slurm returns names, comments and reasons byte for byte as users wrote them.
        return msgspec.json.decode(body.decode(errors="replace"), type=kind)


def _from_fault(method: str, status: int, fault: Fault) -> SlurmError:
    number = fault.error_number
    if number == BAD_CREDENTIAL:
        return Unauthorized(fault.text)
    if number in _NO_DATABASE:
        return Unreachable(f"slurmdbd does not answer: {fault.text}")
    if number in _NO_CONTROLLER or status in (502, 503, 504):
        return Unreachable(f"slurmctld does not answer: {fault.text}")
    # For an unknown node Slurm answers a read with 200 and error 0, "No error".
    if number in _MISSING or (method == "GET" and status == 200 and number == 0):
        return NotFound(fault.text)
    return Refused(number, fault.text)


def _envelope(body: bytes) -> Envelope | None:
    try:
        return decode(body, Envelope)
    except msgspec.DecodeError:
        return None


def _first(envelope: Envelope | None, otherwise: str) -> str:
    return envelope.errors[0].text if envelope and envelope.errors else otherwise
