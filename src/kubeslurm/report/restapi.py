"""The status of a RestApi: how many slurmrestd answer."""

from datetime import datetime

import msgspec

from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.restapi import RestApi
from kubeslurm.api.views import Deployment, Pod
from kubeslurm.decide.missing import Missing
from kubeslurm.report import deletion
from kubeslurm.report.conditions import Finding, conditions, progressing, summarize
from kubeslurm.report.daemon_pod import first_pod_failure
from kubeslurm.report.missing import not_found
from kubeslurm.report.reasons import Reason
from kubeslurm.report.refusal import Rejection, rejected


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of a RestApi when a pass begins."""

    now: datetime
    controller: Controller | None = None
    slurm_conf: str = ""  # the delivered one
    deployment: Deployment | None = None
    pods: tuple[Pod, ...] = ()
    nodesets: tuple[str, ...] = ()

    @property
    def ready(self) -> int:
        return self.deployment.status.readyReplicas if self.deployment else 0


def status(restapi: RestApi, facts: Facts, rejection: Rejection | None) -> Tree:
    """The whole status."""
    summary = summarize(
        failure=_failure(restapi, facts, rejection),
        progress=_progress(restapi, facts),
        ready=not restapi.deleting and (facts.ready > 0 or restapi.spec.replicas == 0),
        message=_ready_message(restapi, facts),
    )
    return {
        "observedGeneration": restapi.metadata.generation,
        "replicas": facts.deployment.status.replicas if facts.deployment else 0,
        "readyReplicas": facts.ready,
        "conditions": conditions(
            restapi.status.conditions, summary, generation=restapi.metadata.generation, now=facts.now
        ),
    }


def _ready_message(restapi: RestApi, facts: Facts) -> str:
    return f"{facts.ready} of {restapi.spec.replicas} slurmrestd are ready"


def _failure(restapi: RestApi, facts: Facts, rejection: Rejection | None) -> Finding | None:
    if facts.controller is None and not restapi.deleting:
        return not_found(Missing("Controller", *restapi.controller_key))
    return rejected(rejection) if rejection else first_pod_failure(facts.pods)


def _progress(restapi: RestApi, facts: Facts) -> Finding | None:
    if restapi.deleting:
        nodesets = ", ".join(facts.nodesets) or "of this cluster"
        return deletion.held(f"the NodeSets {nodesets} need it to drain their workers")
    if facts.controller is not None and not facts.slurm_conf:
        message = f"waiting for the first accepted configuration of Controller {facts.controller.name}"
        return progressing(Reason.WAITING_FOR_CONFIG, message)
    if facts.ready < restapi.spec.replicas:
        return progressing(Reason.STARTING, _ready_message(restapi, facts))
    return None
