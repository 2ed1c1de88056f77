"""What the API server rejects about an object of ours, with the field that a user can change."""

import msgspec

from kubeslurm.report.conditions import Finding, degraded
from kubeslurm.report.reasons import Reason

POD_MAKERS = ("Deployment", "Pod", "StatefulSet")
TEMPLATE, MAIN = "spec.template.", "spec.template.spec.containers[0]"
HELPERS = "spec.template.spec.initContainers"  # the first of them are ours, and take their image from the daemon's
REQUIRED = "FieldValueRequired"


class Cause(msgspec.Struct, frozen=True):
    """One field of the refused object."""

    field: str = ""
    reason: str = ""


class Rejection(msgspec.Struct, frozen=True):
    """What the API server answered; `daemon` is the part of our spec that the first container is made from."""

    message: str
    kind: str = ""
    causes: tuple[Cause, ...] = ()
    daemon: str = ""


def rejected(rejection: Rejection) -> Finding:
    """The finding for an object of which the API server rejects a part."""
    return degraded(Reason.REJECTED, describe(rejection))


def describe(rejection: Rejection) -> str:
    """The server's message and the remedy."""
    fixes = dict.fromkeys(fix for each in rejection.causes if (fix := _fix(rejection.kind, each, rejection.daemon)))
    return f"the API server refuses a part of it: {rejection.message}; {' and '.join(fixes) or 'correct its spec'}"


def _fix(kind: str, cause: Cause, daemon: str) -> str:
    if kind not in POD_MAKERS or not cause.field:
        return ""
    # Our objects have their template of pods at the same place as a Deployment.
    field = TEMPLATE + cause.field if kind == "Pod" else cause.field
    if not field.startswith(TEMPLATE) or field.startswith(HELPERS):
        return ""
    if field.startswith(MAIN):
        field = f"spec.{daemon}" + field.removeprefix(MAIN)
    return f"{'set' if cause.reason == REQUIRED else 'correct'} {field}"
