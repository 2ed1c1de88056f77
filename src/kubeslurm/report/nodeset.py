"""The status of a NodeSet: counts, and what it waits for in words."""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from kubeslurm.api import labels, names
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.decide.nodeset import drain, rollout, scale
from kubeslurm.decide.nodeset.facts import Seen, Worker
from kubeslurm.decide.nodeset.plan import Plan
from kubeslurm.report.conditions import DEGRADED, PROGRESSING, Finding, conditions, summarize
from kubeslurm.report.reasons import Reason

SHOWN = 5


class Troubles(msgspec.Struct, frozen=True):
    """What went wrong in this pass, in words: what the gate refused, what a write met."""

    slurm: str = ""  # why Slurm cannot be asked
    refused: Mapping[str, str] = msgspec.field(default_factory=dict)  # pod -> why it stays
    errors: tuple[str, ...] = ()


def status(nodeset: NodeSet, seen: Seen, plan: Plan, troubles: Troubles, collisions: int | None = None) -> Tree:
    """The whole status as it is applied."""
    workers = [worker for worker in seen.workers if worker.pod.status.phase]
    available = sum(1 for worker in workers if worker.available(seen.now, nodeset.spec.minReadySeconds))
    base = plan.desired if nodeset.spec.scalingMode == "DaemonSet" else len(workers)
    tree: Tree = {
        "replicas": len(workers),
        "updatedReplicas": sum(1 for each in workers if each.revision == seen.revision and not each.terminating),
        "readyReplicas": sum(1 for each in workers if each.ready),
        "availableReplicas": available,
        "unavailableReplicas": max(base - available, 0),
        "desired": plan.desired,
        "observedGeneration": nodeset.metadata.generation,
        "nodeSetHash": seen.revision,
        "selector": labels.selector_text(names.SLURMD, nodeset.name),
    }
    tree |= _slurm_counts(nodeset, seen)
    if collisions is not None:
        tree["collisionCount"] = collisions
    if pins := _pins(nodeset, seen):
        tree["ordinalToNode"] = pins
    found = findings(nodeset, seen, plan, troubles)
    tree["conditions"] = conditions(
        nodeset.status.conditions, found, generation=nodeset.metadata.generation, now=seen.now
    )
    return tree


def blocked(nodeset: NodeSet, seen: Seen, reason: Reason, message: str) -> Tree:
    """A status that says only why nothing can be done; counts stay as they were."""
    found = summarize(failure=Finding(DEGRADED, True, reason, message), progress=None, ready=False)
    return {
        "nodeSetHash": nodeset.status.nodeSetHash,
        "selector": nodeset.status.selector,
        "observedGeneration": nodeset.metadata.generation,
        "conditions": conditions(
            nodeset.status.conditions, found, generation=nodeset.metadata.generation, now=seen.now
        ),
    }


def findings(nodeset: NodeSet, seen: Seen, plan: Plan, troubles: Troubles) -> tuple[Finding, ...]:
    """Ready, Progressing and Degraded, with what is awaited and what helps."""
    trouble = _trouble(nodeset, seen, plan, troubles)
    waiting = _waiting(nodeset, seen, plan, troubles)
    serving = sum(1 for each in seen.workers if each.ready and each.name not in plan.condemned)
    ready = serving >= plan.desired and not nodeset.deleting
    return summarize(
        failure=trouble, progress=waiting, ready=ready, message=f"{serving} of {plan.desired} workers are ready"
    )


def _trouble(nodeset: NodeSet, seen: Seen, plan: Plan, troubles: Troubles) -> Finding | None:
    if troubles.slurm:
        held = (
            f"; {len(plan.condemned)} workers that must go are kept until Slurm says that they are drained"
            if plan.condemned
            else ""
        )
        text = (
            f"Slurm cannot be asked ({troubles.slurm}){held}. No worker is removed meanwhile: "
            "check the RestApi object of this cluster, its pods and slurmctld"
        )
        return _bad(Reason.SLURM_NOT_REACHABLE, text)
    if troubles.errors:
        return _bad(Reason.REJECTED, f"{troubles.errors[0]}{_more(len(troubles.errors) - 1)}")
    if seen.shared:
        text = f"Slurm node {seen.shared[0]} is claimed by pods of several NodeSets{_more(len(seen.shared) - 1)}"
        return _bad(Reason.NODE_NAME_CONFLICT, f"{text}: give each NodeSet a template.spec.hostname of its own")
    invalid = [each for each in seen.workers if each.node is not None and each.node.invalid]
    if invalid:
        reason = invalid[0].node.reason if invalid[0].node else ""
        text = (
            f"Slurm refuses {_listed(invalid)} ({reason}): make extraConf and the limits agree with what the node has"
        )
        return _bad(Reason.INVALID_REGISTRATION, text)
    if nodeset.spec.update_type == "ScheduledUpdate":
        return _bad(
            Reason.NOT_SUPPORTED, "updateStrategy ScheduledUpdate is not supported yet: use RollingUpdate or OnDelete"
        )
    return None


def _waiting(nodeset: NodeSet, seen: Seen, plan: Plan, troubles: Troubles) -> Finding | None:
    going = [each for each in seen.workers if each.name in plan.condemned and not each.terminating]
    if going:
        causes = Counter(plan.condemned[each.name] for each in going)
        text = " and ".join(f"{_of(count)} for {_CAUSES.get(cause, cause)}" for cause, count in sorted(causes.items()))
        first = next((troubles.refused[each.name] for each in going if each.name in troubles.refused), "")
        return _soon(Reason.DRAINING, f"draining {text}{': ' + first if first else ''}")
    leaving = sum(1 for each in seen.workers if each.terminating)
    if plan.create or leaving:
        return _soon(Reason.SCALING, f"{len(plan.create)} workers to create, {leaving} terminating")
    old = [each for each in seen.workers if rollout.outdated(each, seen)]
    if old and nodeset.spec.paused:
        return _soon(Reason.PAUSED, f"{_of(len(old))} of an old revision: set spec.paused to false to go on")
    if old and nodeset.spec.update_type == "RollingUpdate":
        return _soon(Reason.UPDATING, f"{_of(len(old))} of an old revision left")
    return _starting(seen)


def _starting(seen: Seen) -> Finding | None:
    unbound = [each for each in seen.workers if not each.pod.spec.nodeName]
    if unbound:
        told = next((each.message for each in unbound[0].pod.status.conditions if each.type == "PodScheduled"), "")
        return _soon(
            Reason.UNSCHEDULABLE, f"no Kubernetes node for {_listed(unbound)} yet{': ' + told if told else ''}"
        )
    starting = [each for each in seen.workers if not each.ready]
    if starting:
        return _soon(Reason.STARTING, f"{_listed(starting)} not ready yet")
    absent = [each for each in seen.workers if each.node is None] if seen.known else []
    if absent:
        return _soon(Reason.UNREGISTERED, f"{_listed(absent)} not registered in Slurm yet: see the log of slurmd there")
    return None


_CAUSES = {
    scale.SCALE_IN: "scale-in",
    rollout.UPDATE: "the update",
    drain.DELETION: "deletion",
    drain.PLACEMENT: "another placement",
}


def _slurm_counts(nodeset: NodeSet, seen: Seen) -> Tree:
    if not seen.known:
        last = nodeset.status
        return {
            "slurmIdle": last.slurmIdle,
            "slurmAllocated": last.slurmAllocated,
            "slurmDown": last.slurmDown,
            "slurmDrain": last.slurmDrain,
        }
    states = [set(each.node.state) for each in seen.workers if each.node is not None]
    return {
        "slurmIdle": sum(1 for each in states if "IDLE" in each),
        "slurmAllocated": sum(1 for each in states if each & {"ALLOCATED", "MIXED"}),
        "slurmDown": sum(1 for each in states if "DOWN" in each),
        "slurmDrain": sum(1 for each in states if "DRAIN" in each),
    }


def _pins(nodeset: NodeSet, seen: Seen) -> dict[str, str]:
    if not nodeset.spec.pinToNode or nodeset.spec.scalingMode != "StatefulSet":
        return {}
    existing = {host.name for host in seen.hosts}
    pins = {ordinal: node for ordinal, node in (nodeset.status.ordinalToNode or {}).items() if node in existing}
    for each in seen.workers:
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


def _bad(reason: Reason, message: str) -> Finding:
    return Finding(DEGRADED, True, reason, message)


def _soon(reason: Reason, message: str) -> Finding:
    return Finding(PROGRESSING, True, reason, message)
