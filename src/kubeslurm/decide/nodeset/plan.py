"""The whole policy of a NodeSet: what must change for it to have the workers it asks for."""

from collections.abc import Mapping

import msgspec

from kubeslurm.api import names, slots, tolerations
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.api.slots import Slot
from kubeslurm.decide.nodeset import placement, rollout, scale
from kubeslurm.decide.nodeset.cordon import Cause, Cordon, cordon
from kubeslurm.decide.nodeset.facts import Facts
from kubeslurm.decide.nodeset.slurm import deadline, registration, restarts
from kubeslurm.decide.nodeset.slurm import records as orphans
from kubeslurm.decide.nodeset.slurm.deadline import ExpiredDrain
from kubeslurm.decide.nodeset.slurm.drain import DrainReason, HostRules, drain_reason
from kubeslurm.decide.nodeset.slurm.records import Records
from kubeslurm.decide.nodeset.slurm.updates import updates
from kubeslurm.decide.nodeset.worker import Worker
from kubeslurm.slurm.rest.models import NodeUpdate


class Plan(msgspec.Struct, frozen=True):
    """What to do now. Nothing in it deletes a pod by itself: `remove` and `restart` are offered to the gate."""

    desired: int = 0
    leaving: Mapping[str, Cause] = msgspec.field(default_factory=dict)  # pod -> why it must go
    drains: Mapping[str, DrainReason] = msgspec.field(default_factory=dict)  # pod -> why it takes no new jobs
    cordons: Mapping[str, Cordon] = msgspec.field(default_factory=dict)  # pod -> what its annotations must become
    updates: Mapping[str, NodeUpdate] = msgspec.field(default_factory=dict)  # Slurm node -> update
    restarted: tuple[Worker, ...] = ()  # busy workers with another slurmd than Slurm knows
    records: Records = Records()
    remove: tuple[Worker, ...] = ()
    restart: tuple[Worker, ...] = ()  # unregistered workers that get a new pod
    create: tuple[Slot, ...] = ()
    expired: tuple[ExpiredDrain, ...] = ()  # drains past their deadline, by our own clock
    forced: bool = False  # the owner of the NodeSet wants its deletion not to wait for jobs

    @property
    def is_waiting(self) -> bool:
        """Whether something is under way that may need another look before anything changes."""
        return bool(self.leaving or self.create or self.restart or self.restarted or self.records.fence)


def decide(nodeset: NodeSet, facts: Facts) -> Plan:
    """What must change, from facts alone."""
    fit = placement.Fit(nodeset)
    desired = _desired(nodeset, facts, fit)
    staying = [worker for worker in facts.workers if not worker.terminating]
    leaving = _leaving(nodeset, facts, desired, fit)
    drains = _drains(nodeset, facts, staying, leaving)
    records = orphans.orphaned(nodeset, facts, _wanted(nodeset, facts, desired))
    restarted = _restarted(nodeset, facts)
    forced = _is_forced(nodeset)
    return Plan(
        desired=desired,
        leaving=leaving,
        drains=drains,
        cordons=_cordons(facts, staying, drains),
        updates=updates(staying, drains, {worker.name for worker in restarted}) if facts.slurm_known else {},
        restarted=restarted,
        records=records,
        remove=tuple(worker for worker in staying if _may_go(worker, facts, leaving, forced=forced)),
        restart=tuple(registration.unregistered(facts, leaving)),
        create=_create(nodeset, facts, desired, fit),
        expired=_expired(nodeset, facts, leaving, drains),
        forced=forced,
    )


def needs_no_patch(plan: Plan) -> set[str]:
    """Pods that go now and are not worth a patch: they say already why they go, or have no running slurmd."""
    return {
        worker.name
        for worker in plan.remove
        if worker.finished or worker.never_started or worker.cause == plan.leaving.get(worker.name)
    }


def _desired(nodeset: NodeSet, facts: Facts, fit: placement.Fit) -> int:
    if nodeset.deleting:
        return 0
    if nodeset.spec.scalingMode == "StatefulSet":
        return nodeset.spec.replicas
    return sum(1 for host in facts.hosts if fit.may_start(host))


def _leaving(nodeset: NodeSet, facts: Facts, desired: int, fit: placement.Fit) -> dict[str, Cause]:
    """Pods that must go, each with the first cause that applies."""
    staying = [worker for worker in facts.workers if not worker.terminating]
    if nodeset.deleting:
        return {worker.name: Cause.DELETION for worker in staying}
    mode = nodeset.spec.scalingMode
    leaving = {worker.name: Cause.PLACEMENT for worker in staying if worker.mode != mode}
    if mode == "StatefulSet":
        leaving |= {worker.name: Cause.SCALE_IN for worker in scale.surplus(desired, facts.workers)}
    else:
        leaving |= {worker.name: Cause.PLACEMENT for worker in placement.misplaced(facts.workers, facts.hosts, fit)}
    total = desired if mode == "StatefulSet" else len(staying)
    leaving |= {worker.name: Cause.UPDATE for worker in rollout.replaced(nodeset, facts, total, leaving)}
    refused = registration.refused_by_old_record(facts.workers, leaving)
    return leaving | {worker.name: Cause.UPDATE for worker in refused}


def _drains(
    nodeset: NodeSet, facts: Facts, staying: list[Worker], leaving: Mapping[str, Cause]
) -> dict[str, DrainReason]:
    rules = HostRules(
        tolerations=tolerations.of_workers(nodeset),
        taints_drain=facts.drains_on_taints,
        conditions=facts.propagated_conditions,
        draining_conditions=facts.draining_conditions,
        mirrors_drains=facts.mirrors_drains,
    )
    return {worker.name: reason for worker in staying if (reason := drain_reason(worker, leaving, rules))}


def _cordons(facts: Facts, staying: list[Worker], drains: Mapping[str, DrainReason]) -> dict[str, Cordon]:
    known = facts.slurm_known
    return {
        worker.name: found
        for worker in staying
        if (worker.cordoned or worker.name in drains)
        and (found := cordon(worker, drains[worker.name].cause if worker.name in drains else None, slurm_known=known))
    }


def _restarted(nodeset: NodeSet, facts: Facts) -> tuple[Worker, ...]:
    if not facts.slurm_known:
        return ()
    return tuple(restarts.restarted(facts.workers, steps_survive=slots.shares_processes(nodeset)))


def _wanted(nodeset: NodeSet, facts: Facts, desired: int) -> set[str]:
    """Slurm names for which a worker is wanted, even if it cannot be made just now: an admin's drain waits for it."""
    if nodeset.deleting:
        return set()
    if nodeset.spec.scalingMode == "DaemonSet":
        return {slots.daemon_hostname(host) for host in facts.hosts}
    if slots.uses_host_network(nodeset):
        return {host.name for host in facts.hosts}
    vacant = scale.vacancies(desired, facts.workers)
    return {slots.for_ordinal(nodeset, ordinal).hostname for ordinal in vacant}


def _create(nodeset: NodeSet, facts: Facts, desired: int, fit: placement.Fit) -> tuple[Slot, ...]:
    """Slots to fill; not while the slot cools down, nor under the name of a busy record."""
    if nodeset.deleting:
        return ()
    if nodeset.spec.scalingMode == "StatefulSet":
        pins = placement.pins(nodeset, facts.hosts, fit)
        ordinals = scale.missing(desired, facts.workers)
        vacant = [slots.for_ordinal(nodeset, ordinal, pins.get(ordinal, "")) for ordinal in ordinals]
    else:
        vacant = [slots.for_node(host) for host in placement.vacant(facts.workers, facts.hosts, fit)][: scale.BURST]
    blocked = {node.name for node in facts.records if node.busy}
    return tuple(
        slot
        for slot in vacant
        if slot.hostname not in facts.cooling_down and slots.slurm_name(nodeset, slot) not in blocked
    )


def _may_go(worker: Worker, facts: Facts, leaving: Mapping[str, Cause], *, forced: bool) -> bool:
    """Whether the gate has a chance to open; it reads everything again."""
    if worker.finished:
        return worker.slurm_name not in facts.cooling_down
    if worker.name not in leaving:
        return False
    if worker.never_started or worker.forced or forced:
        return True
    if not facts.slurm_known:
        return False
    if worker.node is None:
        return facts.absences.get(worker.slurm_name, 0) >= registration.ABSENCES
    return not worker.node.busy


def _expired(
    nodeset: NodeSet, facts: Facts, leaving: Mapping[str, Cause], drains: Mapping[str, DrainReason]
) -> tuple[ExpiredDrain, ...]:
    if not facts.slurm_known:
        return ()
    found = (
        deadline.expired_drain(worker, drains.get(worker.name), nodeset.spec.drain, facts.now)
        for worker in facts.workers
        if worker.name in leaving
    )
    return tuple(each for each in found if each is not None)


def _is_forced(nodeset: NodeSet) -> bool:
    return nodeset.deleting and nodeset.metadata.annotations.get(names.FORCE_DELETE) == "true"
