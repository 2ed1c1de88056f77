"""The status of a Controller: whether slurmctld serves, which configuration it runs, and what is wrong."""

import msgspec

from kubeslurm.api import names
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.decide.config.acceptance import AcceptanceStep
from kubeslurm.decide.config.delivery import DeliveryStep
from kubeslurm.decide.config.facts import Facts
from kubeslurm.decide.config.plan import Plan
from kubeslurm.decide.keys import KeyChange
from kubeslurm.report import deletion
from kubeslurm.report.conditions import CONFIG_ACCEPTED, Finding, conditions, degraded, progressing, summarize
from kubeslurm.report.daemon_pod import pod_failure
from kubeslurm.report.kept_lines import in_use
from kubeslurm.report.missing import not_found
from kubeslurm.report.reasons import Reason
from kubeslurm.report.refusal import Rejection, rejected
from kubeslurm.slurm.errors import SlurmError


class Outcome(msgspec.Struct, frozen=True):
    """What failed while the plan was carried out."""

    rejected: Rejection | None = None
    reconfigure_error: SlurmError | TimeoutError | None = None


def status(controller: Controller, facts: Facts, plan: Plan, outcome: Outcome) -> Tree:
    """The whole status."""
    ready = facts.reachable if facts.external else facts.pod is not None and facts.pod.ready
    failure, progress = _failure(controller, facts, plan, outcome), _progress(controller, facts, plan)
    summary = summarize(
        failure=failure,
        progress=progress,
        ready=ready and not controller.deleting,
        message=f"slurmctld serves cluster {controller.cluster_name}",
    )
    found = [*summary, _config_accepted(facts, plan, failure or progress)]
    return {
        "observedGeneration": controller.metadata.generation,
        "slurmVersion": facts.version or controller.status.slurmVersion,
        "configHash": plan.delivered if plan.delivery.is_running else controller.status.configHash,
        "wantedConfigHash": facts.desired.digest if facts.desired else controller.status.wantedConfigHash,
        "nodes": facts.nodes,
        "nodeSets": facts.nodesets,
        "conditions": conditions(
            controller.status.conditions, found, generation=controller.metadata.generation, now=facts.now
        ),
    }


def _config_accepted(facts: Facts, plan: Plan, cause: Finding | None) -> Finding:
    desired = facts.desired.digest if facts.desired else ""
    match plan.acceptance.step:
        case AcceptanceStep.REJECT:
            return Finding(CONFIG_ACCEPTED, False, Reason.CONFIG_REJECTED, _rejection(plan))
        case AcceptanceStep.REPEAT_TRIAL:
            message = f"the trial could not run ({plan.acceptance.message}); it is repeated"
            return Finding(CONFIG_ACCEPTED, None, Reason.CONFIG_TRIAL_INCONCLUSIVE, message)
        case AcceptanceStep.START_TRIAL | AcceptanceStep.AWAIT_TRIAL:
            return Finding(CONFIG_ACCEPTED, None, Reason.CONFIG_TRIAL_RUNNING, f"configuration {desired} is on trial")
    if not plan.delivered and cause is not None:
        return Finding(CONFIG_ACCEPTED, None, cause.reason, cause.message)
    return Finding(CONFIG_ACCEPTED, True, Reason.ACCEPTED, f"configuration {plan.delivered} is accepted and delivered")


def _rejection(plan: Plan) -> str:
    kept = f"the cluster goes on with {plan.delivered}" if plan.delivered else "no slurmctld is started before that"
    return f"{plan.acceptance.message} -- correct the file; {kept} (gres.conf is only checked by the workers)"


def _failure(controller: Controller, facts: Facts, plan: Plan, outcome: Outcome) -> Finding | None:
    if controller.deleting:
        return None  # keys and files may be gone already, and nothing is made from them any more
    if facts.undecoded:
        return degraded(Reason.OBJECT_NOT_DECODED, _undecoded(facts))
    if facts.missing:
        return not_found(facts.missing[0])
    if outcome.rejected is not None:
        return rejected(outcome.rejected)
    if failure := _config_failure(plan, outcome) or (pod_failure(facts.pod) if facts.pod else None):
        return failure
    if controller.spec.ha is not None and controller.spec.ha.enabled:
        return degraded(Reason.NOT_SUPPORTED, _backups(facts))
    return None


def _undecoded(facts: Facts) -> str:
    texts = "; ".join(f"{each} cannot be decoded: {each.error}" for each in facts.undecoded)
    return f"{texts} -- correct or delete it; until then the configuration stays as it is"


def _backups(facts: Facts) -> str:
    if not facts.backups:
        return "spec.ha is not supported yet: one slurmctld runs, without backups"
    return (
        f"another operator has started slurmctld with {facts.backups} backups, and spec.ha is not supported yet: they "
        "go on as they are, and no change of this Controller reaches them. Set ha.enabled to false to go on with one"
    )


def _config_failure(plan: Plan, outcome: Outcome) -> Finding | None:
    if plan.acceptance.step is AcceptanceStep.REJECT:
        return degraded(Reason.CONFIG_REJECTED, _rejection(plan))
    if plan.acceptance.step is AcceptanceStep.REPEAT_TRIAL:
        message = f"the configuration could not be tried: {plan.acceptance.message}"
        return degraded(Reason.CONFIG_TRIAL_INCONCLUSIVE, message)
    if outcome.reconfigure_error is not None and not plan.delivery.is_running:
        why = str(outcome.reconfigure_error) or "slurmrestd does not answer"
        return degraded(Reason.RECONFIGURE_FAILED, f"slurmctld did not take configuration {plan.delivered}: {why}")
    return None


def _progress(controller: Controller, facts: Facts, plan: Plan) -> Finding | None:
    if controller.deleting:
        return deletion.held(f"{facts.nodesets} NodeSets still belong to this cluster{_undecoded_note(facts)}")
    if facts.waiting_key is not None:
        return progressing(Reason.KEY_CHANGE_WAITING, _key_wait(controller, facts.waiting_key))
    if plan.acceptance.on_trial and facts.desired is not None:
        message = f"configuration {facts.desired.digest} is on trial before it is delivered"
        return progressing(Reason.CONFIG_TRIAL_RUNNING, message)
    if facts.external:
        return None if facts.reachable else progressing(Reason.SLURM_NOT_REACHABLE, _slurm_remedy(facts))
    if facts.pod is None and facts.accounting_awaited:
        message = f"waiting for Accounting {facts.accounting_awaited}: slurmctld registers there when it first starts"
        return progressing(Reason.WAITING_FOR_ACCOUNTING, message)
    if facts.pod is None or not facts.pod.ready:
        return progressing(Reason.STARTING, "waiting for the slurmctld pod to become ready")
    return _delivery_progress(facts, plan) or in_use(facts.kept)


def _undecoded_note(facts: Facts) -> str:
    texts = ", ".join(str(each) for each in facts.undecoded)
    return f" ({texts} cannot be decoded)" if texts else ""


def _key_wait(controller: Controller, change: KeyChange) -> str:
    secret = controller.spec.slurmKeyRef.name if controller.spec.slurmKeyRef else ""
    jobs = "Slurm cannot be asked for jobs" if change.jobs is None else f"{change.jobs} jobs are on nodes"
    return (
        f"Secret {secret} holds another slurm.key than slurmctld and the workers run with. {jobs}: the new key, and "
        "any other change of slurmctld, waits until none is left, because a worker with another key is given up. To go "
        f"on now, put the former key back, which is in Secret {names.kept_keys(controller.name)}; to give the jobs up, "
        f"delete StatefulSet {names.controller(controller.name)}"
    )


def _delivery_progress(facts: Facts, plan: Plan) -> Finding | None:
    if plan.delivery.is_running:
        return None
    if plan.delivery.step is DeliveryStep.AWAIT_SLURM:
        message = f"configuration {plan.delivered} is delivered and not known to run: {_slurm_remedy(facts)}"
        return progressing(Reason.SLURM_NOT_REACHABLE, message)
    message = f"configuration {plan.delivered} is delivered, and slurmctld does not run with it yet"
    return progressing(Reason.CONFIG_DELIVERING, message)


def _slurm_remedy(facts: Facts) -> str:
    return "waiting for slurmrestd to answer" if facts.restapis else "no RestApi refers to this Controller: create one"
