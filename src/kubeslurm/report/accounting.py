"""The status of an Accounting: whether slurmdbd records, and what is wrong with its database."""

from kubeslurm.api import names
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.accounting import Accounting
from kubeslurm.decide.accounting import ACCESS_DENIED, NOT_REACHABLE, STARTED, Facts
from kubeslurm.report import deletion
from kubeslurm.report.conditions import Finding, conditions, degraded, progressing, summarize
from kubeslurm.report.daemon_pod import pod_failure
from kubeslurm.report.missing import not_found
from kubeslurm.report.reasons import Reason
from kubeslurm.report.refusal import Rejection, rejected

# What slurmdbd looks at when it starts: settings it cannot do without, and those that only cost speed.
_REQUIRED = {"innodb_snapshot_isolation": "OFF", "innodb_lock_wait_timeout": "900"}
_RECOMMENDED = {"innodb_buffer_pool_size": "half of the server's memory"}


def status(accounting: Accounting, facts: Facts, rejection: Rejection | None = None) -> Tree:
    """The whole status."""
    external = accounting.spec.external
    summary = summarize(
        failure=_failure(accounting, facts, rejection),
        progress=_progress(accounting, facts),
        ready=not accounting.deleting and (external or (facts.pod is not None and facts.pod.ready)),
        message=_ready_message(accounting, facts),
    )
    started = STARTED.findall(facts.recent_log)
    return {
        "observedGeneration": accounting.metadata.generation,
        "slurmVersion": started[-1] if started else accounting.status.slurmVersion,
        "conditions": conditions(
            accounting.status.conditions, summary, generation=accounting.metadata.generation, now=facts.now
        ),
    }


def wrong_settings(startup_log: str) -> tuple[str, ...]:
    """The settings of the database server that slurmdbd finds wrong, which it says only when it starts."""
    lines = [line for line in startup_log.splitlines() if "not recommended values" in line or "not supported" in line]
    return tuple(name for name in (*_REQUIRED, *_RECOMMENDED) if any(name in line for line in lines))


def postponed(facts: Facts) -> str:
    """The message about changes that wait; empty for the few seconds of a usual start."""
    if facts.startup_log is None:
        return (
            "slurmdbd may be converting its database, and its log cannot be read to tell: changes of its "
            "configuration, keys and image wait until the log can be read or slurmdbd is ready"
        )
    if facts.is_converting:
        return "slurmdbd converts its database: changes of its configuration, keys and image wait for the end"
    return ""


def _ready_message(accounting: Accounting, facts: Facts) -> str:
    external = accounting.spec.externalConfig
    if accounting.spec.external and external:
        return f"slurmdbd runs elsewhere, at {external.host}:{external.port}"
    slow = [f"{name} of the database ({_RECOMMENDED[name]})" for name in facts.wrong_settings if name in _RECOMMENDED]
    return f"slurmdbd records jobs; for speed raise {', '.join(slow)}" if slow else "slurmdbd records jobs"


def _failure(accounting: Accounting, facts: Facts, rejection: Rejection | None) -> Finding | None:
    if accounting.spec.external:
        return None
    if facts.missing:
        return not_found(facts.missing[0])
    if accounting.spec.storageConfig is None and not accounting.deleting:
        return degraded(Reason.INVALID_SPEC, "spec.storageConfig is not set: say where the database is")
    if facts.password is None and not accounting.deleting:
        return degraded(Reason.INVALID_SPEC, _unusable_password())
    if rejection is not None:
        return rejected(rejection)
    if facts.pod is None:
        return None
    return _database_failure(accounting, _log(facts)) or pod_failure(facts.pod) or _settings_failure(facts)


def _unusable_password() -> str:
    return (
        "slurmdbd.conf cannot carry the password of spec.storageConfig.passwordKeyRef: choose one that is UTF-8 text "
        "without control characters, does not begin with a double quote, and has not both blanks and double quotes"
    )


def _log(facts: Facts) -> str:
    """What slurmdbd logs now, or logged before its container ended, or last before it stopped at its start."""
    container = facts.pod.container_status(names.SLURMDBD) if facts.pod else None
    ended = container.lastState.terminated if container and not container.ready else None
    startup = "" if facts.is_busy else facts.startup_log
    return "\n".join((ended.message if ended else "", startup or "", facts.recent_log))


def _database_failure(accounting: Accounting, log: str) -> Finding | None:
    """The cause behind slurmdbd's errors, with the remedy; what it logged before it last started is over."""
    storage = accounting.spec.storageConfig
    if storage is None:
        return None
    where, recent = f"{storage.host}:{storage.port}", STARTED.split(log)[-1]
    if ACCESS_DENIED in recent:
        secret = storage.passwordKeyRef
        message = (
            f"the database at {where} refuses user {storage.username!r}: correct the password in Secret "
            f"{accounting.namespace}/{secret.name} (key {secret.key!r}), "
            f"or let the user in with GRANT ALL ON {storage.database}.* on the server"
        )
        return degraded(Reason.DATABASE_ACCESS_DENIED, message)
    if any(sign in recent for sign in NOT_REACHABLE):
        message = (
            f"the database at {where} does not answer: start it, or correct spec.storageConfig; "
            "jobs go on, and their records are kept until it is back"
        )
        return degraded(Reason.DATABASE_NOT_REACHABLE, message)
    return None


def _settings_failure(facts: Facts) -> Finding | None:
    required = [f"{name}={_REQUIRED[name]}" for name in facts.wrong_settings if name in _REQUIRED]
    if not required:
        return None
    message = (
        f"set {', '.join(required)} in the database server and restart it, then slurmdbd: it complained at its start"
    )
    return degraded(Reason.DATABASE_MISCONFIGURED, message)


def _progress(accounting: Accounting, facts: Facts) -> Finding | None:
    if accounting.deleting:
        clusters = ", ".join(facts.clusters_with_nodesets) or "a cluster"
        return deletion.held(f"NodeSets of {clusters} may still have jobs to record")
    if accounting.spec.external or (facts.pod is not None and facts.pod.ready):
        return None
    if facts.startup_log is None:
        message = "waiting for slurmdbd to become ready; as its log cannot be read, changes wait until then too"
        return progressing(Reason.STARTING, message)
    if facts.is_converting:
        message = "slurmdbd converts the database for its release, which may take long: do not stop it"
        return progressing(Reason.CONVERTING_DATABASE, message)
    if facts.is_busy:
        message = "slurmdbd works on its tables before it becomes ready: changes wait until then"
        return progressing(Reason.STARTING, message)
    return progressing(Reason.STARTING, "waiting for slurmdbd to become ready")
