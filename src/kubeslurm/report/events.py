"""The closed list of event reasons; docs/api.md says what each means."""

from enum import StrEnum
from typing import Protocol

from kubeslurm.api.resource import Resource


class Event(StrEnum):
    """What an event reports."""

    ADOPTED = "Adopted"
    CONFIG_ACCEPTED = "ConfigAccepted"
    CONFIG_REJECTED = "ConfigRejected"
    CONFIG_RUNNING = "ConfigRunning"
    DRAIN_DEADLINE_EXCEEDED = "DrainDeadlineExceeded"
    FAILED_CREATE = "FailedCreate"
    HOST_KEYS_CREATED = "HostKeysCreated"
    KEYS_CREATED = "KeysCreated"
    NODE_LOST = "NodeLost"
    RESTARTING = "Restarting"
    SUCCESSFUL_CREATE = "SuccessfulCreate"
    SUCCESSFUL_DELETE = "SuccessfulDelete"
    TOKEN_ISSUED = "TokenIssued"  # noqa: S105
    UPDATE_POSTPONED = "UpdatePostponed"
    WORKERS_NOT_RECONFIGURED = "WorkersNotReconfigured"


class Recorder(Protocol):
    """Takes events; only reasons of the list."""

    def normal(self, obj: Resource, reason: Event, message: str) -> None:
        """Something went as it should."""

    def warning(self, obj: Resource, reason: Event, message: str) -> None:
        """Something that a user should look at."""
