"""The status of a Controller: is slurmctld up, which configuration does it run, and what is in the way."""

from datetime import datetime

import msgspec

from kubeslurm.api import names
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.views import Pod
from kubeslurm.decide.config.stages import Check, Delivery, Verdict
from kubeslurm.report.conditions import CONFIG_ACCEPTED, Finding, conditions, degraded, progressing, summarize
from kubeslurm.report.daemon_pod import pod_failure
from kubeslurm.report.reasons import Reason


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What a pass has found and done."""

    check: Check
    wanted: str = ""
    live: str = ""
    delivery: Delivery = Delivery.AWAIT_POD
    delivery_trouble: str = ""
    missing: tuple[Finding, ...] = ()
    refused: Finding | None = None
    pod: Pod | None = None
    reachable: bool = False
    restapis: int = 0
    accounting_awaited: str = ""
    version: str = ""
    nodes: int = 0
    nodesets: int = 0
    now: datetime


def status(controller: Controller, seen: Seen) -> Tree:
    """The whole status."""
    ready = seen.reachable if controller.spec.external else seen.pod is not None and seen.pod.ready
    summary = summarize(
        failure=_failure(controller, seen),
        progress=_progress(controller, seen),
        ready=ready and not controller.deleting,
        message=f"slurmctld serves cluster {controller.cluster_name}",
    )
    found = [*summary, _config(seen)]
    done = seen.delivery is Delivery.DONE
    return {
        "observedGeneration": controller.metadata.generation,
        "slurmVersion": seen.version or controller.status.slurmVersion,
        "configHash": seen.live if done else controller.status.configHash,
        "wantedConfigHash": seen.wanted or controller.status.wantedConfigHash,
        "nodes": seen.nodes,
        "nodeSets": seen.nodesets,
        "conditions": conditions(
            controller.status.conditions, found, generation=controller.metadata.generation, now=seen.now
        ),
    }


def _config(seen: Seen) -> Finding:
    match seen.check.verdict:
        case Verdict.ACCEPTED | Verdict.PROMOTE:
            return Finding(CONFIG_ACCEPTED, True, Reason.ACCEPTED, f"configuration {seen.live} is live")
        case Verdict.REFUSED:
            return Finding(CONFIG_ACCEPTED, False, Reason.CONFIG_REJECTED, _refusal(seen))
        case Verdict.UNTRIED:
            message = f"the trial could not run ({seen.check.message}); it is repeated"
            return Finding(CONFIG_ACCEPTED, None, Reason.CONFIG_TRIAL_INCONCLUSIVE, message)
    return Finding(CONFIG_ACCEPTED, None, Reason.CONFIG_TRIAL_RUNNING, f"configuration {seen.wanted} is being tried")


def _refusal(seen: Seen) -> str:
    kept = f"the cluster goes on with {seen.live}" if seen.live else "no slurmctld is started before it is fixed"
    return f"{seen.check.message} -- {kept}; correct the file (gres.conf is only checked by the workers)"


def _failure(controller: Controller, seen: Seen) -> Finding | None:
    if controller.deleting:
        return None  # keys and files may be gone already, and nothing is made from them any more
    if blocked := next(iter(seen.missing), seen.refused):
        return blocked
    if seen.check.verdict is Verdict.REFUSED:
        return degraded(Reason.CONFIG_REJECTED, _refusal(seen))
    if seen.check.verdict is Verdict.UNTRIED:
        return degraded(Reason.CONFIG_TRIAL_INCONCLUSIVE, f"the configuration could not be tried: {seen.check.message}")
    if seen.delivery_trouble and seen.delivery is not Delivery.DONE:
        return degraded(
            Reason.RECONFIGURE_FAILED, f"slurmctld did not take configuration {seen.live}: {seen.delivery_trouble}"
        )
    if seen.pod is not None and (wrong := pod_failure(seen.pod)):
        return wrong
    if controller.spec.ha is not None and controller.spec.ha.enabled:
        return degraded(Reason.NOT_SUPPORTED, "spec.ha is not supported yet: one slurmctld runs, without backups")
    return None


def _progress(controller: Controller, seen: Seen) -> Finding | None:
    if controller.deleting:
        message = (
            f"{seen.nodesets} NodeSets still belong to this cluster: delete them, "
            f"or set the annotation {names.FORCE_DELETE}=true to go at once"
        )
        return progressing(Reason.DELETION_BLOCKED, message)
    if seen.check.verdict in (Verdict.TRY, Verdict.TRYING):
        return progressing(Reason.CONFIG_TRIAL_RUNNING, f"configuration {seen.wanted} is tried before it is delivered")
    if controller.spec.external:
        return None if seen.reachable else progressing(Reason.SLURM_NOT_REACHABLE, _remedy(seen))
    if seen.pod is None and seen.accounting_awaited:
        message = f"waiting for Accounting {seen.accounting_awaited}: slurmctld registers there when it first starts"
        return progressing(Reason.WAITING_FOR_ACCOUNTING, message)
    if seen.pod is None or not seen.pod.ready:
        return progressing(Reason.STARTING, "waiting for the slurmctld pod to become ready")
    if seen.delivery is Delivery.AWAIT_SLURM:
        message = f"configuration {seen.live} is delivered but not confirmed: {_remedy(seen)}"
        return progressing(Reason.SLURM_NOT_REACHABLE, message)
    if seen.delivery is not Delivery.DONE:
        return progressing(Reason.CONFIG_DELIVERING, f"configuration {seen.live} is on its way into slurmctld")
    return None


def _remedy(seen: Seen) -> str:
    return "waiting for slurmrestd to answer" if seen.restapis else "no RestApi refers to this Controller: create one"
