"""The status of a LoginSet: how many pods users can log into and submit from."""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from kubeslurm.api import labels, names
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.loginset import LoginSet
from kubeslurm.api.views import Deployment, Pod
from kubeslurm.report.conditions import Finding, conditions, degraded, progressing, summarize
from kubeslurm.report.daemon_pod import pod_failure
from kubeslurm.report.reasons import Reason

# What the login image writes while sssd has no connection to its servers, and when it has one again.
_AWAY = "login: directory: the servers of sssd domain "
_BACK = "answer again"


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What a pass has found; `logs` is what the login pods said in the last seconds."""

    blocked: Finding | None = None
    deployment: Deployment | None = None
    pods: tuple[Pod, ...] = ()
    logs: tuple[str, ...] = ()
    now: datetime


def status(loginset: LoginSet, seen: Seen) -> Tree:
    """The whole status."""
    ready = seen.deployment.status.readyReplicas if seen.deployment else 0
    wanted = loginset.spec.replicas
    message = f"users can submit from {ready} of {wanted} login pods"
    waits = None if ready >= wanted or loginset.deleting else progressing(Reason.STARTING, message)
    summary = summarize(
        failure=seen.blocked if _is_failure(seen.blocked) else _failure(loginset, seen),
        progress=seen.blocked if seen.blocked and not _is_failure(seen.blocked) else waits,
        ready=ready > 0 or wanted == 0,
        message=message,
    )
    return {
        "observedGeneration": loginset.metadata.generation,
        "replicas": seen.deployment.status.replicas if seen.deployment else 0,
        "readyReplicas": ready,
        "selector": labels.selector_text(names.LOGIN, loginset.name),
        "conditions": conditions(
            loginset.status.conditions, summary, generation=loginset.metadata.generation, now=seen.now
        ),
    }


def absent_domains(logs: Iterable[str]) -> set[str]:
    """The sssd domains whose servers did not answer when a pod last spoke of them."""
    absent: set[str] = set()
    for log in logs:
        said: dict[str, bool] = {}
        for line in log.splitlines():
            _, found, rest = line.partition(_AWAY)
            if found:
                said[rest.split(" ")[0]] = _BACK not in rest
        absent |= {domain for domain, away in said.items() if away}
    return absent


def _is_failure(finding: Finding | None) -> bool:
    return finding is not None and finding.type == "Degraded"


def _failure(loginset: LoginSet, seen: Seen) -> Finding | None:
    broken = next((wrong for pod in seen.pods if not pod.deleting and (wrong := pod_failure(pod))), None)
    if broken is not None:
        return broken
    if domains := sorted(absent_domains(seen.logs)):
        secret = loginset.spec.sssdConfRef
        message = (
            f"the directory of sssd domain {', '.join(domains)} does not answer: start it, or correct its address in "
            f"Secret {loginset.namespace}/{secret.name} (key {secret.key!r}); only known users can log in"
        )
        return degraded(Reason.DIRECTORY_NOT_REACHABLE, message)
    return None
