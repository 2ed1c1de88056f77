"""The status of a Controller: is slurmctld up, which configuration does it run, and what is in the way."""

from datetime import datetime

import msgspec

from kubeslurm.api import names
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.views import Pod
from kubeslurm.decide.config.stages import Check, Delivery, Verdict
from kubeslurm.report.conditions import (
    CONFIG_ACCEPTED,
    Finding,
    Reason,
    conditions,
    sum_up,
    trouble,
    waiting,
)
from kubeslurm.report.daemon_pod import pod_trouble


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
    summary = sum_up(
        trouble=_trouble(controller, seen),
        waiting=_waiting(controller, seen),
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
            return Finding(CONFIG_ACCEPTED, True, Reason.AS_WANTED, f"configuration {seen.live} is live")
        case Verdict.REFUSED:
            return Finding(CONFIG_ACCEPTED, False, Reason.CONFIG_REFUSED, _refusal(seen))
        case Verdict.UNTRIED:
            message = f"the trial could not run ({seen.check.message}); it is repeated"
            return Finding(CONFIG_ACCEPTED, None, Reason.TRIAL_FAILED, message)
    return Finding(CONFIG_ACCEPTED, None, Reason.CONFIG_ON_TRIAL, f"configuration {seen.wanted} is being tried")


def _refusal(seen: Seen) -> str:
    kept = f"the cluster goes on with {seen.live}" if seen.live else "no slurmctld is started before it is fixed"
    return f"{seen.check.message} -- {kept}; correct the file (gres.conf is only checked by the workers)"


def _trouble(controller: Controller, seen: Seen) -> Finding | None:
    if controller.deleting:
        return None  # keys and files may be gone already, and nothing is made from them any more
    if blocked := next(iter(seen.missing), seen.refused):
        return blocked
    if seen.check.verdict is Verdict.REFUSED:
        return trouble(Reason.CONFIG_REFUSED, _refusal(seen))
    if seen.check.verdict is Verdict.UNTRIED:
        return trouble(Reason.TRIAL_FAILED, f"the configuration could not be tried: {seen.check.message}")
    if seen.delivery_trouble and seen.delivery is not Delivery.DONE:
        return trouble(
            Reason.CONFIG_REFUSED, f"slurmctld did not take configuration {seen.live}: {seen.delivery_trouble}"
        )
    if seen.pod is not None and (wrong := pod_trouble(seen.pod)):
        return wrong
    if controller.spec.ha is not None and controller.spec.ha.enabled:
        return trouble(Reason.HA_NOT_SERVED, "spec.ha is not served yet: one slurmctld runs, without backups")
    return None


def _waiting(controller: Controller, seen: Seen) -> Finding | None:
    if controller.deleting:
        message = (
            f"{seen.nodesets} NodeSets still belong to this cluster: delete them, "
            f"or set the annotation {names.FORCE_DELETE}=true to go at once"
        )
        return waiting(Reason.DELETION_HELD, message)
    if seen.check.verdict in (Verdict.TRY, Verdict.TRYING):
        return waiting(Reason.CONFIG_ON_TRIAL, f"configuration {seen.wanted} is being tried before it becomes live")
    if controller.spec.external:
        return None
    if seen.pod is None and seen.accounting_awaited:
        message = f"waiting for Accounting {seen.accounting_awaited}: slurmctld registers there when it first starts"
        return waiting(Reason.WAITING_FOR_ACCOUNTING, message)
    if seen.pod is None or not seen.pod.ready:
        return waiting(Reason.STARTING, "waiting for the slurmctld pod to become ready")
    if seen.delivery is Delivery.AWAIT_SLURM:
        remedy = (
            "waiting for slurmrestd to answer" if seen.restapis else "no RestApi refers to this Controller: create one"
        )
        return waiting(Reason.NOT_REACHABLE, f"configuration {seen.live} is delivered but not confirmed: {remedy}")
    if seen.delivery is not Delivery.DONE:
        return waiting(Reason.CONFIG_UNDER_WAY, f"configuration {seen.live} is on its way into slurmctld")
    return None
