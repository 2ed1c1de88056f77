"""The acts of a NodeSet's pass, in the order in which they are safe."""

import asyncio
import time
from collections.abc import Callable, Collection, Iterable

from kubeslurm.api import labels, names, slots, tolerations
from kubeslurm.api.kinds import CONTROLLER_REVISION, PERSISTENT_VOLUME_CLAIM, POD
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.api.slots import Slot
from kubeslurm.build.worker import claims, shared, ssh
from kubeslurm.build.worker import pod as worker
from kubeslurm.build.worker.revision import Choice
from kubeslurm.control import fan_out, refusals
from kubeslurm.control.refusals import Refusals
from kubeslurm.control.registration import Options
from kubeslurm.decide.nodeset import sync
from kubeslurm.decide.nodeset.drain import CORDON
from kubeslurm.decide.nodeset.facts import Worker
from kubeslurm.decide.nodeset.placement import Fit
from kubeslurm.decide.nodeset.plan import Plan, Policy
from kubeslurm.decide.nodeset.scale import SCALE_IN
from kubeslurm.engine.cooldown import Cooldown
from kubeslurm.engine.key import Key
from kubeslurm.kube.client import Kube
from kubeslurm.kube.errors import AlreadyExists, NotFound
from kubeslurm.reconcile.nodeset.observe import Observer, View
from kubeslurm.reconcile.nodeset.removal import Outcome, Removal, Request
from kubeslurm.reconcile.nodeset.slurm_nodes import SlurmNodes
from kubeslurm.report import worker_pod as report
from kubeslurm.report.events import Event, Recorder
from kubeslurm.slurm.errors import SlurmError
from kubeslurm.slurm.rest.models import NodeUpdate

SLOT_COOLDOWN, LONGEST_SLOT_COOLDOWN = 1.0, 900.0  # seconds that a slot stays empty after its worker failed
JOBS_DEADLINE = 5.0  # seconds that a pass waits for the jobs' deadlines before it goes on without them


class Pods:
    """Marks, drains, removes and creates workers."""

    def __init__(
        self,
        kube: Kube,
        events: Recorder,
        observer: Observer,
        options: Options,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kube = kube
        self._events = events
        self._observer = observer
        self._options = options
        self._nodes = SlurmNodes(kube)
        self._removal = Removal(kube, clock)
        # By the uid of the NodeSet and the name of the Slurm node.
        self._failed_slots: Cooldown[tuple[str, str]] = Cooldown(clock, base=SLOT_COOLDOWN, limit=LONGEST_SLOT_COOLDOWN)
        self._refusals = Refusals(clock)

    def policy(self, nodeset: NodeSet, view: View) -> Policy:
        """What the decision must know besides the objects."""
        uid = nodeset.metadata.uid
        for each in view.seen.workers:
            if each.ready:
                self._failed_slots.end((uid, each.slurm_name))
        return Policy(
            tolerations=tolerations.of_workers(nodeset),
            watched_conditions=self._options.propagated_node_conditions,
            mirrored=self._options.slurm_drain_on_node == CORDON,
            absences=view.absences,
            pins=_pins(nodeset, view),
            forced=_is_forced(nodeset),
            resting=frozenset(slot for owner, slot in self._failed_slots.active() if owner == uid),
        )

    def forget(self, nodeset: NodeSet) -> None:
        """Drops what was remembered about a NodeSet that is over."""
        uid = nodeset.metadata.uid
        self._refusals.forget(uid)
        self._failed_slots.forget(lambda slot: slot[0] == uid)

    async def prepare(self, nodeset: NodeSet, siblings: Iterable[NodeSet], view: View) -> tuple[str, ...]:
        """Writes what pods need before they can start, and the history of their template."""
        wanted = shared.objects(tuple(siblings) or (nodeset,), nodeset.spec.controllerRef.name)
        ssh_config = ssh.config(nodeset)

        async def apply(tree: Tree) -> None:
            await self._kube.apply(tree)

        troubles = await fan_out.each([*wanted, *([ssh_config] if ssh_config else [])], apply)
        return troubles + await fan_out.each([view.revision], lambda choice: self._write_history(nodeset, choice))

    async def _write_history(self, nodeset: NodeSet, choice: Choice) -> None:
        if choice.create is not None:
            await self._ensure(choice.create)
        if choice.renumber is not None:
            name, number = choice.renumber
            await self._kube.patch(CONTROLLER_REVISION, Key(nodeset.namespace, name), {"revision": number})
        for name in choice.drop:
            await self._kube.delete(CONTROLLER_REVISION, Key(nodeset.namespace, name))

    async def mark(self, nodeset: NodeSet, view: View, plan: Plan) -> tuple[str, ...]:
        """Writes to each pod what changed, in one patch; why it has to go is on record before Slurm hears of it."""
        shown = report.View(
            nodeset=nodeset, now=view.seen.now, known=view.seen.known, deadlines=await self._deadlines(view)
        )
        leaving = {each.name for each in plan.remove}
        patches = []
        for each in view.seen.workers:
            patch = report.patch(each, plan.holds.get(each.name), shown)
            if patch is not None and not (each.name in leaving and _is_done_with(each, plan)):
                patches.append((each, patch))

        async def write(item: tuple[Worker, report.Patch]) -> None:
            each, patch = item
            try:
                await self._kube.patch(POD, Key(*each.pod.key), patch, type="strategic", subresource="status")
            except NotFound:
                return

        return await fan_out.each(patches, write)

    async def drain_cordoned(self, view: View, plan: Plan) -> tuple[str, ...]:
        """Drains workers of cordoned nodes without waiting for marks: why they are drained is on record there."""
        slurm = view.slurm
        if slurm is None or not view.seen.known:
            return ()
        cordoned = sync.of_cordoned(plan.changes, view.seen.workers, plan.holds)
        return await self._nodes.update(slurm, cordoned)

    async def tell_slurm(self, nodeset: NodeSet, view: View, plan: Plan) -> tuple[str, ...]:
        """Drains, resumes, fences, and forgets nodes whose pod is gone."""
        slurm = view.slurm
        if slurm is None or not view.seen.known:
            return ()
        # Marking many pods takes a while, in which Slurm may have been read again.
        suspects = {each.name for each in plan.suspects}
        changes = sync.renewed(plan.changes, view.seen.workers, slurm.snapshot.get, plan.holds, suspects)
        cleared, troubles = await self._nodes.judge(slurm, plan.suspects, self._observer.ages(plan.suspects))
        for each in cleared:  # its jobs are younger than its slurmd: nothing was lost
            comment = NodeUpdate(comment=each.info)
            changes[each.slurm_name] = sync.merged([changes.get(each.slurm_name), comment]) or comment
        troubles += await self._nodes.update(slurm, changes)
        troubles += await self._nodes.fence_orphans(slurm, plan.records.fence)
        troubles += await self._nodes.delete(slurm, await self._departed(nodeset, view, plan.records.delete))
        late, unclear = await self._nodes.late(slurm, plan.overdue)
        troubles += unclear
        if late:
            requeue = bool(nodeset.spec.drain and nodeset.spec.drain.policy == "Requeue")
            self._events.warning(
                nodeset, Event.DRAIN_DEADLINE_EXCEEDED, f"ending the jobs on {', '.join(late)}: drain.deadline"
            )
            troubles += await self._nodes.end_jobs(slurm, late, requeue=requeue)
        return troubles

    async def _departed(self, nodeset: NodeSet, view: View, records: Iterable[str]) -> list[str]:
        """Records whose pod is gone for certain; one that names no pod may be that of a pod not heard of yet."""
        found, snapshot = list(records), view.slurm.snapshot if view.slurm else None
        unnamed = {name for name in found if snapshot and (node := snapshot.get(name)) and not node.comment}
        if not unnamed:
            return found
        known = {worker.pod.metadata.uid for worker in view.seen.workers}
        pods = await self._kube.list(POD, nodeset.namespace, labels.selector(names.SLURMD, nodeset.name))
        return found if {pod.metadata.uid for pod in pods} <= known else [name for name in found if name not in unnamed]

    async def remove(self, nodeset: NodeSet, view: View, plan: Plan) -> Outcome:
        """Offers workers that should go to the gate."""
        wanted = (*plan.remove, *plan.restart)
        if not wanted:
            return Outcome()
        outcome = await self._removal.remove(
            Request(
                owner=nodeset.metadata.uid,
                workers=wanted,
                slurm=view.slurm,
                absences=view.absences,
                amnesia=view.seen.amnesia,
                forced=_is_forced(nodeset),
            )
        )
        for each in wanted:
            if each.finished and each.name in outcome.removed:
                self._failed_slots.back_off((nodeset.metadata.uid, each.slurm_name))
        await self._release_claims(nodeset, [each for each in plan.remove if each.name in outcome.removed], plan)
        if outcome.removed:
            self._events.normal(nodeset, Event.SUCCESSFUL_DELETE, f"deleted {_words(outcome.removed)}")
        return outcome

    async def create(self, controller: Controller, nodeset: NodeSet, view: View, plan: Plan) -> tuple[str, ...]:
        """Creates missing workers; one whose Slurm name another pod claims waits until that pod is gone."""
        created: list[str] = []
        is_taken = self._observer.is_taken
        names_taken = [slot for slot in plan.create if is_taken(nodeset, slots.slurm_name(nodeset, slot))]
        wanted = [slot for slot in plan.create if slot not in names_taken]
        # A quota may have room for one that it refused to others, so a slot that is newly vacant is asked for at once.
        uid, state = nodeset.metadata.uid, (nodeset.metadata.generation, controller.metadata.generation, *wanted)
        held = self._refusals.current(uid, state) if wanted else ""
        refused = [held] if held else []

        async def make(slot: Slot) -> None:
            if refused:  # what is wrong with one worker is wrong with the others as well
                return
            try:
                created.extend(await self._make(controller, nodeset, view, slot))
            except refusals.REFUSED as error:
                refused.append(refusals.words(error, names.SLURMD))

        troubles = await fan_out.each(wanted, make)
        if created:
            self._refusals.forget(uid)
            self._events.normal(nodeset, Event.SUCCESSFUL_CREATE, f"created {_words(created)}")
        if refused and not held:
            self._refusals.add(uid, state, min(refused))
            self._events.warning(nodeset, Event.FAILED_CREATE, min(refused))
        return (*sorted(refused)[:1], *troubles, *(_taken(slot) for slot in names_taken))

    async def _make(self, controller: Controller, nodeset: NodeSet, view: View, slot: Slot) -> tuple[str, ...]:
        """Makes one worker; returns its name unless it was there already."""
        for claim in claims.objects(nodeset, slot):
            await self._ensure(claim)
        tree = worker.pod(controller, nodeset, slot, view.revision.hash, view.hashes, self._options.cluster_domain)
        try:
            made = await self._kube.create(tree)
        except AlreadyExists:
            # Not ours, or not seen yet: look, so that the next pass knows.
            await self._kube.get(POD, Key(nodeset.namespace, slots.pod_name(nodeset, slot)))
            return ()
        return (made.metadata.name,)

    async def _release_claims(self, nodeset: NodeSet, gone: Iterable[Worker], plan: Plan) -> None:
        """Hands the claims of scaled-in workers to their pods, with which they then go; others keep theirs."""
        if nodeset.spec.retention.whenScaled != "Delete":
            return
        for each in gone:
            if plan.condemned.get(each.name) != SCALE_IN:
                continue
            for name in claims.mounted(nodeset, each.pod):
                owner = claims.owned_by(each.pod)
                await self._kube.patch(PERSISTENT_VOLUME_CLAIM, Key(nodeset.namespace, name), owner)

    async def _ensure(self, claim: Tree) -> None:
        try:
            await self._kube.create(claim)
        except AlreadyExists:
            return

    async def _deadlines(self, view: View) -> dict[str, str] | None:
        """When the jobs on each worker end; None keeps what the pods say."""
        slurm = view.slurm
        if slurm is None or not view.seen.known:
            return None
        busy = [each.slurm_name for each in view.seen.workers if each.node is not None and each.node.busy]
        if not busy:
            return {}
        jobs = slurm.jobs
        try:
            async with asyncio.timeout(JOBS_DEADLINE):
                await jobs.update()
                if not jobs.deadlines(busy).keys() >= set(busy):
                    await jobs.update(within=1.0)  # a job began since: whoever goes first must not be its worker
        except (SlurmError, TimeoutError):
            return None
        return jobs.deadlines(busy) if jobs.complete else None


def _is_done_with(each: Worker, plan: Plan) -> bool:
    """Whether the pod already says why it goes, or cannot matter any more: then it is not worth another write."""
    return each.finished or each.never_started or each.cause == plan.condemned.get(each.name)


def _taken(slot: Slot) -> str:
    return f"the Slurm name {slot.hostname} belongs to another pod: waiting until that pod is gone"


def _is_forced(nodeset: NodeSet) -> bool:
    return nodeset.deleting and nodeset.metadata.annotations.get(names.FORCE_DELETE) == "true"


def _pins(nodeset: NodeSet, view: View) -> dict[int, str]:
    if not nodeset.spec.pinToNode:
        return {}
    fit = Fit(nodeset)
    fitting = {host.name for host in view.seen.hosts if fit.may_start(host)}
    return {int(ordinal): node for ordinal, node in (nodeset.status.ordinalToNode or {}).items() if node in fitting}


def _words(found: Collection[str]) -> str:
    listed = sorted(found)
    more = f" and {len(listed) - 8} more" if len(listed) > 8 else ""
    return f"{len(listed)} workers: {', '.join(listed[:8])}{more}" if len(listed) > 1 else f"worker {listed[0]}"
