"""The status of a LoginSet: how many pods users can log into and submit from."""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from kubeslurm.api import labels, names
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.loginset import LoginSet
from kubeslurm.api.views import Deployment, Pod
from kubeslurm.decide.missing import Missing
from kubeslurm.report.conditions import Finding, conditions, degraded, progressing, summarize
from kubeslurm.report.daemon_pod import first_pod_failure
from kubeslurm.report.missing import not_found
from kubeslurm.report.reasons import Reason
from kubeslurm.report.refusal import Rejection, rejected

# What the login image writes while sssd has no connection to its servers, and when it has one again.
_AWAY = "login: directory: the servers of sssd domain "
_BACK = "answer again"


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of a LoginSet when a pass begins."""

    now: datetime
    controller: Controller | None = None
    missing: tuple[Missing, ...] = ()
    deployment: Deployment | None = None
    pods: tuple[Pod, ...] = ()
    logs: tuple[str, ...] = ()  # of the last seconds

    @property
    def ready(self) -> int:
        return self.deployment.status.readyReplicas if self.deployment else 0


def status(loginset: LoginSet, facts: Facts, rejection: Rejection | None) -> Tree:
    """The whole status."""
    ready, desired = facts.ready, loginset.spec.replicas
    message = f"users can submit from {ready} of {desired} login pods"
    summary = summarize(
        failure=_failure(loginset, facts, rejection),
        progress=progressing(Reason.STARTING, message) if ready < desired else _draining(facts),
        ready=ready > 0 or desired == 0,
        message=message,
    )
    return {
        "observedGeneration": loginset.metadata.generation,
        "replicas": facts.deployment.status.replicas if facts.deployment else 0,
        "readyReplicas": ready,
        "selector": labels.selector_text(names.LOGIN, loginset.name),
        "conditions": conditions(
            loginset.status.conditions, summary, generation=loginset.metadata.generation, now=facts.now
        ),
    }


def absent_domains(logs: Iterable[str]) -> set[str]:
    """The sssd domains whose servers did not answer when a pod last logged about them."""
    absent: set[str] = set()
    for log in logs:
        away: dict[str, bool] = {}
        for line in log.splitlines():
            _, found, rest = line.partition(_AWAY)
            if found:
                away[rest.split(" ")[0]] = _BACK not in rest
        absent |= {domain for domain, is_away in away.items() if is_away}
    return absent


def _draining(facts: Facts) -> Finding | None:
    """Pods that are to go, and what they wait for; their deletion time is the end of that wait."""
    leaving = sorted(
        (pod.metadata.deletionTimestamp, pod.name)
        for pod in facts.pods
        if pod.metadata.deletionTimestamp is not None and pod.metadata.deletionTimestamp > facts.now
    )
    if not leaving:
        return None
    pods = ", ".join(name for _, name in leaving)
    message = (
        f"waiting until users have logged out of {pods}, at the latest until {leaving[-1][0]:%Y-%m-%dT%H:%M:%SZ}; "
        "to end their sessions now, delete the pod with --grace-period=5"
    )
    return progressing(Reason.DRAINING, message)


def _failure(loginset: LoginSet, facts: Facts, rejection: Rejection | None) -> Finding | None:
    if facts.missing:
        return not_found(facts.missing[0])
    failure = rejected(rejection) if rejection else first_pod_failure(facts.pods)
    if failure is not None:
        return failure
    if domains := sorted(absent_domains(facts.logs)):
        secret = loginset.spec.sssdConfRef
        message = (
            f"the directory of sssd domain {', '.join(domains)} does not answer: start it, or correct its address in "
            f"Secret {loginset.namespace}/{secret.name} (key {secret.key!r}); only known users can log in"
        )
        return degraded(Reason.DIRECTORY_NOT_REACHABLE, message)
    return None
