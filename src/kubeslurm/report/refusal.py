"""What the API server finds wrong with an object of ours, told by the field that a user can change."""

from collections.abc import Iterable

import msgspec

POD_MAKERS = ("Deployment", "Pod", "StatefulSet")
TEMPLATE, MAIN = "spec.template.", "spec.template.spec.containers[0]"
HELPERS = "spec.template.spec.initContainers"  # the first of them are ours, and take their image from the daemon's
REQUIRED = "FieldValueRequired"


class Cause(msgspec.Struct, frozen=True):
    """One field of the refused object."""

    field: str = ""
    reason: str = ""


def refusal(message: str, kind: str, causes: Iterable[Cause], daemon: str) -> str:
    """The server's words and the remedy; `daemon` is the part of our spec that its first container is made from."""
    fixes = dict.fromkeys(fix for each in causes if (fix := _fix(kind, each, daemon)))
    return f"the API server refuses a part of it: {message}; {' and '.join(fixes) or 'correct its spec'}"


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
