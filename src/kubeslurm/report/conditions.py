"""Conditions: how an object says in its status what is, what it waits for, and what to do about it."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Literal

import msgspec

from kubeslurm.api.meta import Condition, Tree, tree

Status = Literal["True", "False", "Unknown"]

READY = "Ready"
PROGRESSING = "Progressing"
DEGRADED = "Degraded"
CONFIG_ACCEPTED = "ConfigAccepted"


class Reason(StrEnum):
    """Why a condition of the control plane is as it is; programs may rely on this list."""

    ACCOUNTING_MISSING = "AccountingMissing"
    AS_WANTED = "AsWanted"
    CONFIG_MAP_MISSING = "ConfigMapMissing"
    CONFIG_ON_TRIAL = "ConfigOnTrial"
    CONFIG_REFUSED = "ConfigRefused"
    CONFIG_UNDER_WAY = "ConfigUnderWay"
    CONTROLLER_MISSING = "ControllerMissing"
    CONVERTING_DATABASE = "ConvertingDatabase"
    DATABASE_AWAY = "DatabaseNotReachable"
    DATABASE_REFUSED = "DatabaseAccessDenied"
    DATABASE_SETTINGS = "DatabaseSettings"
    DELETION_HELD = "DeletionHeld"
    DIRECTORY_AWAY = "DirectoryNotReachable"
    HA_NOT_SERVED = "HighAvailabilityNotServed"
    IMAGE_TROUBLE = "ImageTrouble"
    INVALID = "Invalid"
    KEY_MISSING = "KeyMissing"
    NOT_REACHABLE = "SlurmNotReachable"
    NOT_SCHEDULED = "NotScheduled"
    REFUSED = "Refused"
    RESTARTING = "Restarting"
    STARTING = "Starting"
    TOKEN_EXPIRED = "TokenExpired"  # noqa: S105
    TRIAL_FAILED = "TrialFailed"
    WAITING_FOR_ACCOUNTING = "WaitingForAccounting"
    WAITING_FOR_CONFIG = "WaitingForConfig"


class Finding(msgspec.Struct, frozen=True):
    """One condition to be: a status of None means that nobody can tell."""

    type: str
    status: bool | None
    reason: str
    message: str = ""


def conditions(old: Iterable[Condition], found: Iterable[Finding], *, generation: int, now: datetime) -> list[Tree]:
    """The conditions as the status takes them; the time of one moves only when its status does."""
    before = {condition.type: condition for condition in old}
    return [_condition(finding, before.get(finding.type), generation, now) for finding in found]


def sum_up(
    *, trouble: Finding | None, waiting: Finding | None, ready: bool, message: str = ""
) -> tuple[Finding, Finding, Finding]:
    """Ready, Progressing and Degraded from what is wrong and what is awaited; what is wrong speaks first."""
    first = trouble or waiting
    reason, why = (first.reason, first.message) if first else (str(Reason.AS_WANTED), message)
    return (
        Finding(READY, ready, str(Reason.AS_WANTED) if ready else reason, message if ready else why),
        Finding(PROGRESSING, waiting is not None, *_words(waiting)),
        Finding(DEGRADED, trouble is not None, *_words(trouble)),
    )


def trouble(reason: Reason, message: str) -> Finding:
    """Something that somebody has to see to."""
    return Finding(DEGRADED, True, str(reason), message)


def waiting(reason: Reason, message: str) -> Finding:
    """Something that will pass by itself."""
    return Finding(PROGRESSING, True, str(reason), message)


def no_controller(name: str) -> Finding:
    """Whoever belongs to a cluster names its Controller."""
    return trouble(Reason.CONTROLLER_MISSING, f"Controller {name} does not exist: create it, or correct controllerRef")


def _words(finding: Finding | None) -> tuple[str, str]:
    return (finding.reason, finding.message) if finding else (str(Reason.AS_WANTED), "")


def _condition(finding: Finding, before: Condition | None, generation: int, now: datetime) -> Tree:
    status: Status = "Unknown" if finding.status is None else "True" if finding.status else "False"
    same = before is not None and before.status == status and before.lastTransitionTime is not None
    condition = Condition(
        type=finding.type,
        status=status,
        reason=finding.reason,
        message=finding.message,
        observedGeneration=generation,
        lastTransitionTime=before.lastTransitionTime if before and same else now.replace(microsecond=0),
    )
    return tree(condition)
