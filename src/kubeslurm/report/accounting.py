"""The status of an Accounting: does slurmdbd record, and if not, what does it complain about."""

import re
from datetime import datetime

import msgspec

from kubeslurm.api import names
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.accounting import Accounting
from kubeslurm.api.views import Pod
from kubeslurm.report.conditions import Finding, conditions, degraded, progressing, summarize
from kubeslurm.report.daemon_pod import pod_failure
from kubeslurm.report.reasons import Reason

_STARTED = re.compile(r"slurmdbd version (\S+) started")
_CONNECTED = "MySQL server version is"
# Seen when 26.05 took over a database of 24.11: each table is brought up to date before slurmdbd listens.
_CONVERTS = re.compile(r"onverting|(adding|dropping|changing) \S*\s?(column|key) ", re.IGNORECASE)
# Client errors of MySQL: no connection, unknown host, connection lost.
_AWAY = ("failed: 2002", "failed: 2003", "failed: 2005", "error: 2006", "error: 2013", "must be up when starting")
_REFUSED = "Access denied for user"
# What slurmdbd looks at when it starts: settings it cannot do without, and those that only cost speed.
_INSISTED = {"innodb_snapshot_isolation": "OFF", "innodb_lock_wait_timeout": "900"}
_ADVISED = {"innodb_buffer_pool_size": "half of the server's memory"}


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What a pass has found; `log` is what slurmdbd said in the last seconds.

    `begun` is what it said first: empty once it has been ready, None when its log cannot be read.
    """

    blocked: Finding | None = None
    pod: Pod | None = None
    log: str = ""
    begun: str | None = ""
    settings: tuple[str, ...] = ()
    held_by: tuple[str, ...] = ()
    now: datetime


def status(accounting: Accounting, seen: Seen) -> Tree:
    """The whole status."""
    external = accounting.spec.external
    summary = summarize(
        failure=_failure(accounting, seen),
        progress=_progress(accounting, seen),
        ready=not accounting.deleting and (external or (seen.pod is not None and seen.pod.ready)),
        message=_well(accounting, seen),
    )
    started = _STARTED.findall(seen.log)
    return {
        "observedGeneration": accounting.metadata.generation,
        "slurmVersion": started[-1] if started else accounting.status.slurmVersion,
        "conditions": conditions(
            accounting.status.conditions, summary, generation=accounting.metadata.generation, now=seen.now
        ),
    }


def _well(accounting: Accounting, seen: Seen) -> str:
    external = accounting.spec.externalConfig
    if accounting.spec.external and external:
        return f"slurmdbd runs elsewhere, at {external.host}:{external.port}"
    advice = [f"{name} of the database ({_ADVISED[name]})" for name in seen.settings if name in _ADVISED]
    return f"slurmdbd records jobs; for speed raise {', '.join(advice)}" if advice else "slurmdbd records jobs"


def _failure(accounting: Accounting, seen: Seen) -> Finding | None:
    if seen.blocked is not None:
        return seen.blocked
    if seen.pod is None or accounting.spec.external:
        return None
    return diagnosis(accounting, _said(seen)) or pod_failure(seen.pod) or _settings_failure(seen.settings)


def _said(seen: Seen) -> str:
    """What slurmdbd says now, or said before its container ended, or last before it fell silent at its start."""
    container = seen.pod.container_status(names.SLURMDBD) if seen.pod else None
    ended = container.lastState.terminated if container and not container.ready else None
    begun = "" if busy(seen.begun) else seen.begun
    return "\n".join((ended.message if ended else "", begun or "", seen.log))


def diagnosis(accounting: Accounting, log: str) -> Finding | None:
    """The trouble behind slurmdbd's complaints, with the remedy; what it said before it last started is over."""
    storage = accounting.spec.storageConfig
    if storage is None:
        return None
    where, recent = f"{storage.host}:{storage.port}", _STARTED.split(log)[-1]
    if _REFUSED in recent:
        secret = storage.passwordKeyRef
        message = (
            f"the database at {where} refuses user {storage.username!r}: correct the password in Secret "
            f"{accounting.namespace}/{secret.name} (key {secret.key!r}), "
            f"or let the user in with GRANT ALL ON {storage.database}.* on the server"
        )
        return degraded(Reason.DATABASE_ACCESS_DENIED, message)
    if any(sign in recent for sign in _AWAY):
        message = (
            f"the database at {where} does not answer: start it, or correct spec.storageConfig; "
            "jobs go on, and their records are kept until it is back"
        )
        return degraded(Reason.DATABASE_NOT_REACHABLE, message)
    return None


def converts(begun: str) -> bool:
    """Whether slurmdbd turns the database into that of its release, by its first words, which may be hours old."""
    latest = _since_complaint(begun)
    return bool(_CONVERTS.search(latest)) and not _STARTED.search(latest)


def busy(begun: str | None) -> bool:
    """Whether slurmdbd works on its tables, or nobody can tell: it does so before it says a word of a conversion."""
    if begun is None or converts(begun):
        return True
    latest = _since_complaint(begun)
    return _CONNECTED in latest and not _STARTED.search(latest)


def _since_complaint(begun: str) -> str:
    """What it said since the database last turned it away.

    When that happens at the end of a conversion, slurmdbd waits for ever and says no more: only another one will do.
    """
    lines = begun.splitlines()
    signs = (_REFUSED, *_AWAY)
    last = max((number for number, line in enumerate(lines) if any(sign in line for sign in signs)), default=-1)
    return "\n".join(lines[last + 1 :])


def held(begun: str | None) -> str:
    """What users are told about changes that wait; nothing for the few seconds of a start as usual."""
    if begun is None:
        return (
            "slurmdbd may be converting its database, and its log cannot be read to tell: changes of its "
            "configuration, keys and image wait until the log can be read or slurmdbd is ready"
        )
    if converts(begun):
        return "slurmdbd converts its database: changes of its configuration, keys and image wait for the end"
    return ""


def complaints(log: str) -> tuple[str, ...]:
    """The settings of the database server that slurmdbd found wrong, which it says only when it starts."""
    lines = [line for line in log.splitlines() if "not recommended values" in line or "is not supported" in line]
    return tuple(name for name in (*_INSISTED, *_ADVISED) if any(name in line for line in lines))


def _settings_failure(settings: tuple[str, ...]) -> Finding | None:
    wanted = [f"{name}={_INSISTED[name]}" for name in settings if name in _INSISTED]
    if not wanted:
        return None
    message = (
        f"set {', '.join(wanted)} in the database server and restart it, then slurmdbd: it complained at its start"
    )
    return degraded(Reason.DATABASE_MISCONFIGURED, message)


def _progress(accounting: Accounting, seen: Seen) -> Finding | None:
    if accounting.deleting:
        message = (
            f"NodeSets of {', '.join(seen.held_by) or 'a cluster'} may still have jobs to record: delete them, "
            f"or set the annotation {names.FORCE_DELETE}=true to go at once"
        )
        return progressing(Reason.DELETION_BLOCKED, message)
    if accounting.spec.external or (seen.pod is not None and seen.pod.ready):
        return None
    if seen.begun is None:
        message = "waiting for slurmdbd to become ready; as its log cannot be read, changes wait until then too"
        return progressing(Reason.STARTING, message)
    if converts(seen.begun):
        message = "slurmdbd converts the database for its release, which may take long: do not stop it"
        return progressing(Reason.CONVERTING_DATABASE, message)
    if busy(seen.begun):
        message = "slurmdbd works on its tables before it becomes ready: changes wait until then"
        return progressing(Reason.STARTING, message)
    return progressing(Reason.STARTING, "waiting for slurmdbd to become ready")
