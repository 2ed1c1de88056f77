"""Whether a worker pod may be deleted: only on proof that no job is there."""

from enum import StrEnum

import msgspec

from kubeslurm.api import names
from kubeslurm.decide.nodeset.slurm.registration import ABSENCES
from kubeslurm.decide.nodeset.worker import Worker
from kubeslurm.slurm.rest.models import Node

FORCE_HINT = f"annotate the pod with {names.FORCE_DELETE}=true to remove it all the same"


class Doubt(StrEnum):
    """Why it is not certain that a worker has no job."""

    NO_RESTAPI = "NoRestApi"
    NAME_UNKNOWN = "NameUnknown"
    OTHER_NAME = "OtherName"
    SLURM_NOT_REACHABLE = "SlurmNotReachable"
    JOBS_UNKNOWN = "JobsUnknown"
    RUNS_JOBS = "RunsJobs"
    NOT_DRAINED = "NotDrained"
    HIDDEN_JOB = "HiddenJob"
    ABSENT_BRIEFLY = "AbsentBriefly"
    RAN_JOBS = "RanJobs"
    STATE_LOST = "StateLost"
    ONE_AT_A_TIME = "OneAtATime"


class Objection(msgspec.Struct, frozen=True):
    """Why a worker pod stays."""

    doubt: Doubt
    message: str


class RemovalFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What was just read about one worker that should go."""

    worker: Worker  # its pod as the API server has it now
    forced: bool = False  # the owner of the NodeSet wants its deletion not to wait for jobs
    has_restapi: bool = False
    answered: bool = False  # Slurm was asked about the node and answered
    node: Node | None = None  # as Slurm has it now; None: Slurm does not know it, or did not answer
    error: str = ""  # why it did not answer
    drained_before: bool = False  # the node was drained before the jobs were listed, so that none began since
    jobs_known: bool = False
    hidden_job: str = ""  # a job that may be there: the state of a node does not show suspended ones
    other_name: str = ""  # a Slurm node without a pod of its name, which may be this worker's
    absences: int = 0  # full lists in a row without the node
    state_lost: bool = False  # slurmctld seems to have lost its state
    others_first: bool = False  # another worker that Slurm does not know was removed a moment ago


def needs_slurm(worker: Worker, *, forced: bool) -> bool:
    """Whether Slurm must be asked about the worker.

    Without a Kubernetes node nobody could have started slurmd. Otherwise a kubelet that is cut off from the API server
    may have started it without our knowing.
    """
    if forced or worker.forced or worker.finished:
        return False
    return bool(worker.pod.spec.nodeName)


def objection(facts: RemovalFacts) -> Objection | None:
    """Why the pod must stay; None when it may go.

    It may go on a fresh "drained" for its very node, before and after the list of jobs showed none there; or when no
    job can be there: it was never scheduled, it has ended, or Slurm answers that it does not know the node. Where
    slurmd may have registered, several full lists must agree on that.
    """
    worker, node = facts.worker, facts.node
    if not needs_slurm(worker, forced=facts.forced):
        return None
    if why := _unanswered(facts):
        return why
    if node is None:
        return _absent(facts)
    if facts.other_name:
        return _other_name(facts)
    if not facts.jobs_known:
        return Objection(Doubt.JOBS_UNKNOWN, "Slurm cannot be asked which jobs it has")
    return _not_drained(worker, node) or _hidden_job(facts, node)


def rests_on_absence(facts: RemovalFacts) -> bool:
    """Whether the pod may go only because Slurm does not know its node; such removals are done slowly."""
    worker = facts.worker
    return needs_slurm(worker, forced=facts.forced) and not worker.never_started and facts.node is None


def _unanswered(facts: RemovalFacts) -> Objection | None:
    worker = facts.worker
    # The kubelet may be right that slurmd has not started, but only Slurm can confirm it.
    hint = f"; slurmd has not started as far as the kubelet says: {FORCE_HINT}" if worker.never_started else ""
    if not facts.has_restapi:
        text = f"Slurm cannot be asked: the cluster has no RestApi that answers{hint}"
        return Objection(Doubt.NO_RESTAPI, text)
    if not worker.slurm_name:
        return Objection(Doubt.NAME_UNKNOWN, f"the Slurm node of pod {worker.name} is not known yet")
    if not facts.answered:
        text = f"Slurm cannot be asked about node {worker.slurm_name}: {facts.error}{hint}"
        return Objection(Doubt.SLURM_NOT_REACHABLE, text)
    return None


def _other_name(facts: RemovalFacts) -> Objection:
    worker, other = facts.worker, facts.other_name
    text = f"pod {worker.name} may be node {other} in Slurm instead of {worker.slurm_name}"
    return Objection(Doubt.OTHER_NAME, f"{text}: see that {other} is drained and has no jobs, then {FORCE_HINT}")


def _absent(facts: RemovalFacts) -> Objection | None:
    name, worker = facts.worker.slurm_name, facts.worker
    if worker.was_busy:
        text = f"Slurm has forgotten node {name}, which ran jobs when it was last heard of: {FORCE_HINT}"
        return Objection(Doubt.RAN_JOBS, text)
    if facts.other_name:
        return _other_name(facts)
    if worker.never_started:
        return None
    if facts.absences < ABSENCES:
        return Objection(Doubt.ABSENT_BRIEFLY, f"Slurm does not know node {name}; waiting until several lists agree")
    if facts.state_lost and worker.ever_registered:
        text = f"slurmctld has lost most of its nodes, {name} among them: bring its state back, or {FORCE_HINT}"
        return Objection(Doubt.STATE_LOST, text)
    if facts.others_first:
        return Objection(Doubt.ONE_AT_A_TIME, "workers that Slurm does not know are removed one after the other")
    return None


def _hidden_job(facts: RemovalFacts, node: Node) -> Objection | None:
    if facts.hidden_job:
        return Objection(Doubt.HIDDEN_JOB, facts.hidden_job)
    if not facts.drained_before:
        text = f"node {node.name} of pod {facts.worker.name} was drained a moment ago; its jobs are listed once more"
        return Objection(Doubt.NOT_DRAINED, text)
    return None


def _not_drained(worker: Worker, node: Node) -> Objection | None:
    if node.drained:
        return None
    state = "+".join(node.state)
    if node.busy:
        return Objection(Doubt.RUNS_JOBS, f"node {node.name} of pod {worker.name} still runs jobs ({state})")
    return Objection(Doubt.NOT_DRAINED, f"node {node.name} of pod {worker.name} is not drained yet ({state})")
