"""Carries out the plan of a NodeSet in the one safe order."""

import asyncio
import time
from collections.abc import Callable, Iterable

from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.control import failures
from kubeslurm.control.fan_out import Error
from kubeslurm.control.registration import Context
from kubeslurm.decide.nodeset.plan import Plan
from kubeslurm.decide.nodeset.slurm import updates
from kubeslurm.reconcile.nodeset.create import Create, Created
from kubeslurm.reconcile.nodeset.memory import FailedSlots
from kubeslurm.reconcile.nodeset.observe import Observation, Observer
from kubeslurm.reconcile.nodeset.owners import Owners
from kubeslurm.reconcile.nodeset.patch_pods import patch_pods
from kubeslurm.reconcile.nodeset.remove import Remove
from kubeslurm.reconcile.nodeset.slurm import reservation
from kubeslurm.reconcile.nodeset.slurm.jobs import SlurmJobs
from kubeslurm.reconcile.nodeset.slurm.nodes import SlurmNodes
from kubeslurm.report.events import Event
from kubeslurm.report.nodeset import Outcome


class Act:
    """Writes to Kubernetes and Slurm; what fails for one worker is reported and holds up no other."""

    def __init__(
        self,
        context: Context,
        observer: Observer,
        failed_slots: FailedSlots,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kube = context.kube
        self._events = context.events
        self._observer = observer
        self._failed_slots = failed_slots
        self._nodes = SlurmNodes(context.kube)
        self._jobs = SlurmJobs(context.kube, self._nodes, observer.sightings.age)
        self._remove = Remove(context.kube, context.events, observer, failed_slots, clock)
        self._create = Create(context, clock)
        self.owners = Owners(context.kube, context.caches)

    async def carry_out(
        self,
        controller: Controller | None,
        nodeset: NodeSet,
        siblings: Iterable[NodeSet],
        observed: Observation,
        plan: Plan,
    ) -> Outcome:
        """Slurm comes first: a node must be drained before its pod may go, and lose its old record before a new pod."""
        facts = observed.facts
        self._failed_slots.recovered(nodeset.metadata.uid, facts.workers)
        errors: tuple[Error, ...] = ()
        if controller is not None and not nodeset.deleting:
            errors += await self._create.prepare(nodeset, siblings, facts.workers, observed.revision)
            errors += await self.owners.complete(nodeset, facts.workers)
        drained, patched = await asyncio.gather(
            self._drain_for_kubernetes_nodes(observed, plan), patch_pods(self._kube, nodeset, facts, plan)
        )
        errors += drained + patched + await self._write_to_slurm(nodeset, observed, plan)
        removals = await self._remove.remove(nodeset, observed, plan)
        created = Created()
        if controller is not None:
            created = await self._create.create(controller, nodeset, facts, plan.create, self._observer.is_taken)
        return Outcome(
            failures=(*failures.of(errors), *created.failures, *failures.of(removals.errors)),
            objections=removals.objections,
            names_taken=created.names_taken,
            claims_going=created.claims_going,
        )

    def forget(self, nodeset: NodeSet) -> None:
        """Drops what was remembered about a NodeSet that is over."""
        self._create.forget(nodeset)
        self.owners.forget(nodeset)
        self._failed_slots.forget(nodeset.metadata.uid)

    async def _drain_for_kubernetes_nodes(self, observed: Observation, plan: Plan) -> tuple[Error, ...]:
        """Does not wait for the patches of pods: why these workers are drained is on their Kubernetes nodes."""
        if observed.slurm is None or not observed.facts.slurm_known:
            return ()
        drains = updates.for_kubernetes_nodes(plan.updates, observed.facts.workers, plan.drains)
        return await self._nodes.update(observed.slurm, drains)

    async def _write_to_slurm(self, nodeset: NodeSet, observed: Observation, plan: Plan) -> tuple[Error, ...]:
        """Drains, resumes, fences, deletes records without a pod, and ends jobs past a drain deadline."""
        slurm, workers = observed.slurm, observed.facts.workers
        if slurm is None or not observed.facts.slurm_known:
            return ()
        left = await reservation.clean_up(self._kube, slurm, nodeset)
        # Patching many pods takes a while, in which Slurm may have been read again.
        restarted = {worker.name for worker in plan.restarted}
        due = updates.renewed(plan.updates, workers, slurm.snapshot.get, plan.drains, restarted)
        intact, errors = await self._jobs.end_lost(slurm, plan.restarted)
        errors += left + await self._nodes.update(slurm, updates.with_comments(due, intact))
        errors += await self._nodes.fence_orphans(slurm, plan.records.fence)
        errors += await self._nodes.delete_orphans(slurm, nodeset, plan.records.remove, workers)
        late, unclear = await self._jobs.expired(slurm, plan.expired)
        errors += unclear
        if late:
            self._events.warning(
                nodeset, Event.DRAIN_DEADLINE_EXCEEDED, f"ending the jobs on {', '.join(late)}: drain.deadline"
            )
            errors += await self._jobs.end_all(slurm, late, nodeset.spec.drain)
        return errors
