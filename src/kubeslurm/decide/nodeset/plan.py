"""The whole policy of a NodeSet: what must change for it to have the workers it asks for."""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from kubeslurm.api import slots
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.api.slots import Slot
from kubeslurm.decide.nodeset import drain, health, placement, rollout, scale, sync
from kubeslurm.decide.nodeset.drain import Hold, Overdue
from kubeslurm.decide.nodeset.facts import Seen, Worker
from kubeslurm.decide.nodeset.health import Records
from kubeslurm.slurm.rest.models import NodeUpdate


class Policy(msgspec.Struct, frozen=True):
    """What the decision depends on besides the objects."""

    tolerations: Sequence[Tree] = ()
    watched_conditions: Collection[str] = ()
    mirrored: bool = False  # drains made in Slurm are shown as cordons of Kubernetes nodes
    absences: Mapping[str, int] = msgspec.field(default_factory=dict)  # full lists in a row without the Slurm node
    pins: Mapping[int, str] = msgspec.field(default_factory=dict)  # ordinal -> Kubernetes node
    resting: Collection[str] = ()  # slots whose worker failed a moment ago
    forced: bool = False  # the owner of the NodeSet wants its deletion not to wait for jobs


class Plan(msgspec.Struct, frozen=True):
    """What to do now. Nothing in it deletes a pod by itself: `remove` and `restart` are offered to the gate."""

    desired: int = 0
    condemned: Mapping[str, str] = msgspec.field(default_factory=dict)  # pod -> cause
    holds: Mapping[str, Hold] = msgspec.field(default_factory=dict)  # pod -> why it takes no new jobs
    changes: Mapping[str, NodeUpdate] = msgspec.field(default_factory=dict)  # Slurm node -> update
    suspects: tuple[Worker, ...] = ()
    records: Records = Records()
    remove: tuple[Worker, ...] = ()
    restart: tuple[Worker, ...] = ()
    create: tuple[Slot, ...] = ()
    overdue: tuple[Overdue, ...] = ()  # Slurm nodes whose jobs have had their time, by our own clock

    @property
    def is_waiting(self) -> bool:
        """Whether something is under way that may need another look before anything changes."""
        return bool(self.condemned or self.create or self.restart or self.suspects or self.records.fence)


def decide(nodeset: NodeSet, seen: Seen, policy: Policy) -> Plan:
    """What must change, from facts alone."""
    fit = placement.Fit(nodeset)
    desired = _desired(nodeset, seen, fit)
    condemned = _condemned(nodeset, seen, desired, fit)
    staying = [worker for worker in seen.workers if not worker.terminating]
    holds = {worker.name: held for worker in staying if (held := _hold(worker, condemned, policy))}
    vacant = [] if nodeset.deleting else _vacancies(nodeset, seen, desired, fit, policy)
    records = _records(nodeset, seen, _wanted(nodeset, seen, desired))
    steps_survive = slots.shares_processes(nodeset)
    suspects = tuple(health.suspects(seen.workers, steps_survive=steps_survive)) if seen.known else ()
    blocked = {node.name for node in records.fence} | {node.name for node in seen.records if node.busy}
    return Plan(
        desired=desired,
        condemned=condemned,
        holds=holds,
        changes=sync.changes(staying, holds, {worker.name for worker in suspects}) if seen.known else {},
        suspects=suspects,
        records=records,
        remove=tuple(worker for worker in staying if _may_ask(worker, condemned, seen, policy)),
        restart=tuple(health.unregistered(seen, policy.absences, condemned)),
        create=tuple(slot for slot in vacant if slots.slurm_name(nodeset, slot) not in blocked),
        overdue=tuple(
            late
            for worker in staying
            if worker.name in condemned
            and seen.known
            and (late := drain.overdue(worker, holds.get(worker.name), nodeset.spec.drain, seen.now))
        ),
    )


def _hold(worker: Worker, condemned: Mapping[str, str], policy: Policy) -> Hold | None:
    watched = policy.watched_conditions
    return drain.hold(worker, condemned, policy.tolerations, watched, mirrored=policy.mirrored)


def _desired(nodeset: NodeSet, seen: Seen, fit: placement.Fit) -> int:
    if nodeset.deleting:
        return 0
    if nodeset.spec.scalingMode == "StatefulSet":
        return nodeset.spec.replicas
    return sum(1 for host in seen.hosts if fit.may_start(host))


def _condemned(nodeset: NodeSet, seen: Seen, desired: int, fit: placement.Fit) -> dict[str, str]:
    """Pods that must go, each with the first cause that applies."""
    staying = [worker for worker in seen.workers if not worker.terminating]
    if nodeset.deleting:
        return {worker.name: drain.DELETION for worker in staying}
    mode = nodeset.spec.scalingMode
    condemned = {worker.name: drain.PLACEMENT for worker in staying if worker.mode != mode}
    if mode == "StatefulSet":
        leaving, cause = scale.surplus(desired, seen.workers), scale.SCALE_IN
    else:
        leaving, cause = placement.misplaced(seen.workers, seen.hosts, fit), drain.PLACEMENT
    condemned |= {worker.name: cause for worker in leaving}
    total = desired if mode == "StatefulSet" else len(staying)
    for worker in rollout.replaced(nodeset, seen, total, condemned):
        condemned[worker.name] = rollout.UPDATE
    for worker in health.outgrown(seen.workers, condemned):
        condemned[worker.name] = rollout.UPDATE
    return condemned


def _wanted(nodeset: NodeSet, seen: Seen, desired: int) -> set[str]:
    """Slurm names for which a worker is wanted, even if it cannot be made just now: an admin's drain waits for it."""
    if nodeset.deleting:
        return set()
    if nodeset.spec.scalingMode == "DaemonSet":
        return {slots.daemon_hostname(host) for host in seen.hosts}
    if slots.uses_host_network(nodeset):
        return {host.name for host in seen.hosts}
    vacant = scale.vacancies(desired, seen.workers)
    return {slots.for_ordinal(nodeset, ordinal).hostname for ordinal in vacant}


def _vacancies(nodeset: NodeSet, seen: Seen, desired: int, fit: placement.Fit, policy: Policy) -> list[Slot]:
    if nodeset.spec.scalingMode == "StatefulSet":
        ordinals = scale.missing(desired, seen.workers)
        vacant = [slots.for_ordinal(nodeset, ordinal, policy.pins.get(ordinal, "")) for ordinal in ordinals]
    else:
        vacant = [slots.for_node(host) for host in placement.vacant(seen.workers, seen.hosts, fit)][: scale.BURST]
    return [slot for slot in vacant if slot.hostname not in policy.resting]


def _records(nodeset: NodeSet, seen: Seen, wanted: Collection[str]) -> Records:
    if not seen.known:
        return Records()
    kept = seen.records
    if (
        nodeset.spec.scalingMode == "DaemonSet"
        and nodeset.spec.pruneSlurmNodeRecords == "Never"
        and not nodeset.deleting
    ):
        # The record of a worker that comes back is renewed; one whose Kubernetes node left is the user's to delete.
        kept = tuple(node for node in kept if node.busy or node.name in wanted)
    return health.orphans(kept, wanted)


def _may_ask(worker: Worker, condemned: Mapping[str, str], seen: Seen, policy: Policy) -> bool:
    """Whether the gate has a chance to open; it looks again for itself."""
    if worker.finished:
        return worker.slurm_name not in policy.resting
    if worker.name not in condemned:
        return False
    if worker.never_started or worker.forced or policy.forced:
        return True
    if not seen.known:
        return False
    if worker.node is None:
        return policy.absences.get(worker.slurm_name, 0) >= health.ABSENCES
    return not worker.node.busy
