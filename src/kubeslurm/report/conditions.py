"""Conditions: an object's state, what it waits for, and what a user can do about it."""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

import msgspec

from kubeslurm.api.meta import Condition, Tree, tree
from kubeslurm.report.reasons import Reason

Status = Literal["True", "False", "Unknown"]

READY = "Ready"
PROGRESSING = "Progressing"
DEGRADED = "Degraded"
CONFIG_ACCEPTED = "ConfigAccepted"


class Finding(msgspec.Struct, frozen=True):
    """One condition before it has a time; a status of None means unknown."""

    type: str
    status: bool | None
    reason: Reason
    message: str = ""


def conditions(old: Iterable[Condition], found: Iterable[Finding], *, generation: int, now: datetime) -> list[Tree]:
    """The conditions as the status takes them; the time of one changes only when its status does."""
    before = {condition.type: condition for condition in old}
    return [_condition(finding, before.get(finding.type), generation, now) for finding in found]


def summarize(
    *, failure: Finding | None, progress: Finding | None, ready: bool, message: str = ""
) -> tuple[Finding, Finding, Finding]:
    """Ready, Progressing and Degraded; a failure comes before what is in progress as the cause of Ready=False."""
    cause = failure or progress or Finding(READY, False, Reason.NOT_READY, message)
    return (
        Finding(READY, True, Reason.READY, message) if ready else Finding(READY, False, cause.reason, cause.message),
        progress or Finding(PROGRESSING, False, Reason.STABLE),
        failure or Finding(DEGRADED, False, Reason.HEALTHY),
    )


def degraded(reason: Reason, message: str) -> Finding:
    """Something that somebody has to act on."""
    return Finding(DEGRADED, True, reason, message)


def progressing(reason: Reason, message: str) -> Finding:
    """Something that ends without help."""
    return Finding(PROGRESSING, True, reason, message)


def _condition(finding: Finding, before: Condition | None, generation: int, now: datetime) -> Tree:
    status: Status = "Unknown" if finding.status is None else "True" if finding.status else "False"
    same = before is not None and before.status == status and before.lastTransitionTime is not None
    condition = Condition(
        type=finding.type,
        status=status,
        reason=str(finding.reason),
        message=finding.message,
        observedGeneration=generation,
        lastTransitionTime=before.lastTransitionTime if before and same else now.replace(microsecond=0),
    )
    return tree(condition)
