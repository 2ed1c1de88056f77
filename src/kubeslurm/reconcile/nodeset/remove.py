"""Offers workers that should go to the gate, and sees to what they leave behind."""

from collections.abc import Callable, Collection

from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.decide.nodeset.cordon import Cause
from kubeslurm.decide.nodeset.plan import Plan
from kubeslurm.kube.client import Kube
from kubeslurm.reconcile.nodeset.claims import Claims
from kubeslurm.reconcile.nodeset.memory import FailedSlots
from kubeslurm.reconcile.nodeset.observe import Observation, Observer
from kubeslurm.reconcile.nodeset.removal import Removal, Removals, Request
from kubeslurm.report.events import Event, Recorder


class Remove:
    """Removes workers through the gate."""

    def __init__(
        self,
        kube: Kube,
        events: Recorder,
        observer: Observer,
        failed_slots: FailedSlots,
        clock: Callable[[], float],
    ) -> None:
        self._events = events
        self._observer = observer
        self._failed_slots = failed_slots
        self._claims = Claims(kube)
        self._gate = Removal(kube, clock)

    async def remove(self, nodeset: NodeSet, observed: Observation, plan: Plan) -> Removals:
        """Asks the gate for all workers that should go."""
        wanted = (*plan.remove, *plan.restart)
        if not wanted:
            return Removals()
        request = Request(
            owner=nodeset.metadata.uid,
            workers=wanted,
            slurm=observed.slurm,
            absences=observed.facts.absences,
            unclaimed=self._observer.unclaimed(nodeset, observed.slurm),
            state_lost=observed.facts.state_lost,
            forced=plan.forced,
        )
        found = await self._gate.remove(request)
        for worker in wanted:
            if worker.finished and worker.name in found.removed:
                self._failed_slots.failed(nodeset.metadata.uid, worker.slurm_name)
        if nodeset.spec.retention.whenScaled == "Delete":
            gone = (each for each in plan.remove if each.name in found.removed)
            await self._claims.release(
                nodeset, [each for each in gone if plan.leaving.get(each.name) is Cause.SCALE_IN]
            )
        if found.removed:
            self._events.normal(nodeset, Event.SUCCESSFUL_DELETE, f"deleted {describe(found.removed)}")
        return found


def describe(names: Collection[str]) -> str:
    """The names of workers for an event, the first of many."""
    listed = sorted(names)
    more = f" and {len(listed) - 8} more" if len(listed) > 8 else ""
    return f"{len(listed)} workers: {', '.join(listed[:8])}{more}" if len(listed) > 1 else f"worker {listed[0]}"
