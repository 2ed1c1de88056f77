"""The status of a NodeSet: counts, what it waits for, and what is wrong."""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from kubeslurm.api import labels, meta, names
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.decide.nodeset import rollout
from kubeslurm.decide.nodeset.cordon import Cause
from kubeslurm.decide.nodeset.facts import Facts
from kubeslurm.decide.nodeset.plan import Plan
from kubeslurm.decide.nodeset.removal import Objection
from kubeslurm.decide.nodeset.worker import Worker
from kubeslurm.report.conditions import Finding, conditions, degraded, progressing, summarize
from kubeslurm.report.failures import Failure
from kubeslurm.report.reasons import Reason

SHOWN = 5


class Outcome(msgspec.Struct, frozen=True):
    """What came of carrying out a plan."""

    failures: tuple[Failure, ...] = ()
    objections: Mapping[str, Objection] = msgspec.field(default_factory=dict)  # pod -> why it stays
    names_taken: tuple[str, ...] = ()  # Slurm names of workers to create that other pods still have
    claims_going: tuple[str, ...] = ()  # claims of earlier workers that must be gone before new ones are made


_CAUSES = {
    Cause.SCALE_IN: "scale-in",
    Cause.UPDATE: "the update",
    Cause.DELETION: "deletion",
    Cause.PLACEMENT: "another placement",
}


def status(nodeset: NodeSet, facts: Facts, plan: Plan, outcome: Outcome) -> Tree:
    """The whole status as it is applied."""
    workers = [worker for worker in facts.workers if worker.pod.status.phase]
    available = sum(1 for worker in workers if worker.available(facts.now, nodeset.spec.minReadySeconds))
    base = plan.desired if nodeset.spec.scalingMode == "DaemonSet" else len(workers)
    tree: Tree = {
        "replicas": len(workers),
        "updatedReplicas": sum(1 for each in workers if each.revision == facts.revision and not each.terminating),
        "readyReplicas": sum(1 for each in workers if each.ready),
        "availableReplicas": available,
        "unavailableReplicas": max(base - available, 0),
        "desired": plan.desired,
        "observedGeneration": nodeset.metadata.generation,
        "nodeSetHash": facts.revision,
        "selector": labels.selector_text(names.SLURMD, nodeset.name),
    }
    tree |= _slurm_counts(nodeset, facts)
    if facts.collisions is not None:
        tree["collisionCount"] = facts.collisions
    if pins := _pins(nodeset, facts):
        tree["ordinalToNode"] = pins
    return tree | _conditions(nodeset, facts, findings(nodeset, facts, plan, outcome))


def blocked(nodeset: NodeSet, facts: Facts, reason: Reason, message: str) -> Tree:
    """A status that says only why nothing can be done; counts stay as they were."""
    found = summarize(failure=degraded(reason, message), progress=None, ready=False)
    last = nodeset.status
    required = {"nodeSetHash": last.nodeSetHash, "selector": last.selector}
    # A field that is left out of a server-side apply would be deleted.
    kept = meta.tree(last) | required | {"observedGeneration": nodeset.metadata.generation}
    return kept | _conditions(nodeset, facts, found)


def findings(nodeset: NodeSet, facts: Facts, plan: Plan, outcome: Outcome) -> tuple[Finding, ...]:
    """Ready, Progressing and Degraded, with what is awaited and what helps."""
    failure = _failure(nodeset, facts, plan, outcome)
    progress = _progress(nodeset, facts, plan, outcome)
    running = [each for each in facts.workers if each.ready and each.name not in plan.leaving]
    absent, down = _unusable(facts, running)
    serving = len(running) - absent - down
    ready = serving >= plan.desired and not nodeset.deleting
    message = f"{serving} of {plan.desired} workers are ready"
    message += f", {absent} run but are not registered in Slurm" if absent else ""
    message += f", {down} run but are down in Slurm" if down else ""
    first, *rest = summarize(failure=failure, progress=progress, ready=ready, message=message)
    if first.message != message and (absent or down):
        first = msgspec.structs.replace(first, message=f"{message}; {first.message}")
    return (first, *rest)


def _unusable(facts: Facts, running: Iterable[Worker]) -> tuple[int, int]:
    """Of workers whose pods are ready: how many Slurm does not know, and how many it cannot use."""
    if not facts.slurm_known:
        return 0, 0
    nodes = [each.node for each in running]
    return nodes.count(None), sum(1 for node in nodes if node is not None and (node.down or node.invalid))


def _conditions(nodeset: NodeSet, facts: Facts, found: Iterable[Finding]) -> Tree:
    generation = nodeset.metadata.generation
    return {"conditions": conditions(nodeset.status.conditions, found, generation=generation, now=facts.now)}


def _failure(nodeset: NodeSet, facts: Facts, plan: Plan, outcome: Outcome) -> Finding | None:
    if facts.slurm_error:
        return degraded(Reason.SLURM_NOT_REACHABLE, _without_slurm(facts, plan))
    if outcome.failures:
        first = outcome.failures[0]
        return degraded(first.reason, f"{first.message}{_more(len(outcome.failures) - 1)}")
    if outcome.names_taken:
        text = f"the Slurm name {outcome.names_taken[0]} belongs to another pod: waiting until that pod is gone"
        return degraded(Reason.NODE_NAME_CONFLICT, f"{text}{_more(len(outcome.names_taken) - 1)}")
    if shared := facts.shared_names:
        text = f"Slurm node {shared[0]} is claimed by pods of several NodeSets{_more(len(shared) - 1)}"
        return degraded(Reason.NODE_NAME_CONFLICT, f"{text}: give each NodeSet a template.spec.hostname of its own")
    invalid = [each for each in facts.workers if each.node is not None and each.node.invalid]
    if invalid:
        reason = invalid[0].node.reason if invalid[0].node else ""
        remedy = "make extraConf and the limits agree with what the node has"
        return degraded(Reason.INVALID_REGISTRATION, f"Slurm refuses {_listed(invalid)} ({reason}): {remedy}")
    if nodeset.spec.update_type == "ScheduledUpdate":
        return degraded(
            Reason.NOT_SUPPORTED, "updateStrategy ScheduledUpdate is not supported yet: use RollingUpdate or OnDelete"
        )
    return None


def _without_slurm(facts: Facts, plan: Plan) -> str:
    count = len(plan.leaving)
    kept = f"; {count} workers that must go are kept until Slurm says that they are drained" if count else ""
    return (
        f"Slurm cannot be asked ({facts.slurm_error}){kept}. No worker is removed meanwhile: "
        "check the RestApi object of this cluster, its pods and slurmctld"
    )


def _progress(nodeset: NodeSet, facts: Facts, plan: Plan, outcome: Outcome) -> Finding | None:
    going = [each for each in facts.workers if each.name in plan.leaving and not each.terminating]
    if going:
        causes = Counter(plan.leaving[each.name] for each in going)
        text = " and ".join(f"{_of(count)} for {_CAUSES[cause]}" for cause, count in sorted(causes.items()))
        objections = outcome.objections
        first = next((objections[each.name].message for each in going if each.name in objections), "")
        return progressing(Reason.DRAINING, f"draining {text}{': ' + first if first else ''}")
    terminating = sum(1 for each in facts.workers if each.terminating)
    if plan.create or terminating:
        text = f"{len(plan.create)} workers to create, {terminating} terminating"
        claims = outcome.claims_going
        awaited = f"; waiting until claim {claims[0]} is deleted" if claims else ""
        return progressing(Reason.SCALING, text + awaited)
    old = [each for each in facts.workers if rollout.outdated(nodeset, each, facts)]
    if old and nodeset.spec.paused:
        return progressing(Reason.PAUSED, f"{_of(len(old))} of an old revision: set spec.paused to false to go on")
    if old and nodeset.spec.update_type == "RollingUpdate":
        return progressing(Reason.UPDATING, f"{_of(len(old))} of an old revision left")
    return _starting(facts)


def _starting(facts: Facts) -> Finding | None:
    unbound = [each for each in facts.workers if not each.pod.spec.nodeName]
    if unbound:
        why = next((each.message for each in unbound[0].pod.status.conditions if each.type == "PodScheduled"), "")
        text = f"no Kubernetes node for {_listed(unbound)} yet{': ' + why if why else ''}"
        return progressing(Reason.UNSCHEDULABLE, text)
    starting = [each for each in facts.workers if not each.ready]
    if starting:
        return progressing(Reason.STARTING, f"{_listed(starting)} not ready yet")
    absent = [each for each in facts.workers if each.node is None] if facts.slurm_known else []
    if absent:
        return progressing(
            Reason.UNREGISTERED, f"{_listed(absent)} not registered in Slurm yet: see the log of slurmd there"
        )
    return None


def _slurm_counts(nodeset: NodeSet, facts: Facts) -> Tree:
    if not facts.slurm_known:
        last = nodeset.status
        return {
            "slurmIdle": last.slurmIdle,
            "slurmAllocated": last.slurmAllocated,
            "slurmDown": last.slurmDown,
            "slurmDrain": last.slurmDrain,
        }
    states = [set(each.node.state) for each in facts.workers if each.node is not None]
    return {
        "slurmIdle": sum(1 for each in states if "IDLE" in each),
        "slurmAllocated": sum(1 for each in states if each & {"ALLOCATED", "MIXED"}),
        "slurmDown": sum(1 for each in states if "DOWN" in each),
        "slurmDrain": sum(1 for each in states if "DRAIN" in each),
    }


def _pins(nodeset: NodeSet, facts: Facts) -> dict[str, str]:
    if not nodeset.spec.pinToNode or nodeset.spec.scalingMode != "StatefulSet":
        return {}
    existing = {host.name for host in facts.hosts}
    pins = {ordinal: node for ordinal, node in (nodeset.status.ordinalToNode or {}).items() if node in existing}
    for each in facts.workers:
        if each.ordinal is not None and each.pod.status.phase == "Running":
            pins[str(each.ordinal)] = each.pod.spec.nodeName
    return dict(sorted(pins.items(), key=lambda item: int(item[0])))


def _listed(workers: Iterable[Worker]) -> str:
    found = sorted(each.name for each in workers)
    more = _more(len(found) - SHOWN)
    return ", ".join(found[:SHOWN]) + more


def _of(count: int) -> str:
    return "1 worker" if count == 1 else f"{count} workers"


def _more(count: int) -> str:
    return f" (and {count} more)" if count > 0 else ""
