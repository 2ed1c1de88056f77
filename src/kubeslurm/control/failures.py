"""Chooses the reason to report for an error by its type."""

from collections.abc import Iterable

from kubeslurm.control.fan_out import Error
from kubeslurm.kube.errors import ApiError, Throttled, Unavailable
from kubeslurm.report.failures import Failure
from kubeslurm.report.reasons import Reason
from kubeslurm.slurm.errors import SlurmError, Unauthorized, Unreachable

# The first type that fits.
_REASONS: tuple[tuple[type[Exception], Reason], ...] = (
    (Unavailable, Reason.REQUEST_FAILED),
    (Throttled, Reason.REQUEST_FAILED),
    (ApiError, Reason.REJECTED),
    (Unreachable, Reason.SLURM_NOT_REACHABLE),
    (Unauthorized, Reason.SLURM_NOT_REACHABLE),
    (SlurmError, Reason.SLURM_REJECTED),
)


def of(errors: Iterable[Error]) -> tuple[Failure, ...]:
    """The errors as a report takes them."""
    return tuple(Failure(_reason(error), str(error)) for error in errors)


def _reason(error: Error) -> Reason:
    return next(reason for type_, reason in _REASONS if isinstance(error, type_))
