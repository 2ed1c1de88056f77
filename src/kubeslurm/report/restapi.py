"""The status of a RestApi: how many slurmrestd answer."""

from collections.abc import Iterable
from datetime import datetime

from kubeslurm.api import names
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.restapi import RestApi
from kubeslurm.api.views import Deployment, Pod
from kubeslurm.report.conditions import Finding, conditions, progressing, summarize
from kubeslurm.report.daemon_pod import pod_failure
from kubeslurm.report.reasons import Reason


def status(
    restapi: RestApi, deployment: Deployment | None, pods: Iterable[Pod], blocked: Finding | None, now: datetime
) -> Tree:
    """The whole status; `blocked` is what keeps the pods from being made."""
    replicas = deployment.status.replicas if deployment else 0
    ready = deployment.status.readyReplicas if deployment else 0
    summary = summarize(
        failure=blocked if blocked and blocked.type == "Degraded" else _failure(pods),
        progress=blocked if blocked and blocked.type == "Progressing" else _progress(restapi, ready),
        ready=ready > 0 or restapi.spec.replicas == 0,
        message=f"{ready} of {restapi.spec.replicas} slurmrestd are ready",
    )
    return {
        "observedGeneration": restapi.metadata.generation,
        "replicas": replicas,
        "readyReplicas": ready,
        "conditions": conditions(restapi.status.conditions, summary, generation=restapi.metadata.generation, now=now),
    }


def no_config(name: str) -> Finding:
    return progressing(Reason.WAITING_FOR_CONFIG, f"waiting for the first checked configuration of Controller {name}")


def _failure(pods: Iterable[Pod]) -> Finding | None:
    return next((wrong for pod in pods if not pod.deleting and (wrong := pod_failure(pod))), None)


def _progress(restapi: RestApi, ready: int) -> Finding | None:
    if restapi.deleting:
        message = (
            "NodeSets of this cluster still need it to drain their workers: delete them, "
            f"or set the annotation {names.FORCE_DELETE}=true to go at once"
        )
        return progressing(Reason.DELETION_BLOCKED, message)
    if ready < restapi.spec.replicas:
        return progressing(Reason.STARTING, f"{ready} of {restapi.spec.replicas} slurmrestd are ready")
    return None
