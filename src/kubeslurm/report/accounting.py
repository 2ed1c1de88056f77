"""The status of an Accounting: does slurmdbd record, and if not, what does it complain about."""

import re
from datetime import datetime

import msgspec

from kubeslurm.api.accounting import Accounting
from kubeslurm.api.meta import Tree
from kubeslurm.api.views import Pod
from kubeslurm.build import names
from kubeslurm.report.conditions import Finding, Reason, conditions, sum_up, waiting
from kubeslurm.report.pods import pod_trouble

_STARTED = re.compile(r"slurmdbd version (\S+) started")


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What a pass has found; `log` is what slurmdbd said in the last seconds."""

    blocked: Finding | None = None
    pod: Pod | None = None
    log: str = ""
    held_by: tuple[str, ...] = ()
    now: datetime


def status(accounting: Accounting, seen: Seen) -> Tree:
    """The whole status."""
    external = accounting.spec.external
    summary = sum_up(
        trouble=_trouble(accounting, seen),
        waiting=_waiting(accounting, seen),
        ready=not accounting.deleting and (external or (seen.pod is not None and seen.pod.ready)),
        message=_where(accounting),
    )
    started = _STARTED.findall(seen.log)
    return {
        "observedGeneration": accounting.metadata.generation,
        "slurmVersion": started[-1] if started else accounting.status.slurmVersion,
        "conditions": conditions(
            accounting.status.conditions, summary, generation=accounting.metadata.generation, now=seen.now
        ),
    }


def _where(accounting: Accounting) -> str:
    external = accounting.spec.externalConfig
    if accounting.spec.external and external:
        return f"slurmdbd runs elsewhere, at {external.host}:{external.port}"
    return "slurmdbd records jobs"


def _trouble(accounting: Accounting, seen: Seen) -> Finding | None:
    if seen.blocked is not None:
        return seen.blocked
    if seen.pod is None or accounting.spec.external:
        return None
    return diagnosis(accounting, _said(seen)) or pod_trouble(seen.pod)


def _said(seen: Seen) -> str:
    """What slurmdbd says now, or said before its container ended."""
    container = seen.pod.container_status(names.SLURMDBD) if seen.pod else None
    ended = container.lastState.terminated if container and not container.ready else None
    return (ended.message if ended else "") + "\n" + seen.log


def diagnosis(accounting: Accounting, log: str) -> Finding | None:
    """The trouble behind slurmdbd's complaints, with the remedy."""
    return None


def _waiting(accounting: Accounting, seen: Seen) -> Finding | None:
    if accounting.deleting:
        message = (
            f"NodeSets of {', '.join(seen.held_by) or 'a cluster'} may still have jobs to record: delete them, "
            f"or set the annotation {names.FORCE_DELETE}=true to go at once"
        )
        return waiting(Reason.DELETION_HELD, message)
    if accounting.spec.external or (seen.pod is not None and seen.pod.ready):
        return None
    if "onvert" in seen.log:
        message = "slurmdbd converts the database for its release, which may take long: do not stop it"
        return waiting(Reason.CONVERTING_DATABASE, message)
    return waiting(Reason.STARTING, "waiting for slurmdbd to become ready")
