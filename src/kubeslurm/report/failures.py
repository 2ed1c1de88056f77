"""Calls that failed, by reason."""

import msgspec

from kubeslurm.report.reasons import Reason


class Failure(msgspec.Struct, frozen=True):
    """One call to the API server or to Slurm that failed."""

    reason: Reason
    message: str
