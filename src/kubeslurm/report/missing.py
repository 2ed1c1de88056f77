"""Findings about references to objects that do not exist."""

from kubeslurm.decide.missing import Missing
from kubeslurm.report.conditions import Finding, degraded
from kubeslurm.report.reasons import Reason

_REASONS = {
    "Secret": Reason.SECRET_KEY_NOT_FOUND,
    "ConfigMap": Reason.CONFIG_MAP_NOT_FOUND,
    "Accounting": Reason.ACCOUNTING_NOT_FOUND,
    "Controller": Reason.CONTROLLER_NOT_FOUND,
}


def not_found(missing: Missing) -> Finding:
    """What is missing, and what to do about it."""
    return degraded(_REASONS[missing.kind], _message(missing))


def _message(missing: Missing) -> str:
    if not missing.name:
        return f"spec.{missing.field} is not set: name the Secret that holds the key"
    name = f"{missing.kind} {missing.namespace}/{missing.name}"
    match missing.kind:
        case "Secret":
            return f"{name} with the key {missing.key!r} is missing ({missing.field}): create it, or put it back"
        case "ConfigMap":
            return f"{name} is missing: create it, or remove the reference to it"
        case "Accounting":
            return f"{name} does not exist: create it, or remove accountingRef"
    return f"{name} does not exist: create it, or correct controllerRef"
