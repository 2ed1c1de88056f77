"""Offers workers that should go to the gate, and sees to what they leave behind."""

from collections.abc import Callable, Collection, Iterable

from kubeslurm.api.kinds import PERSISTENT_VOLUME_CLAIM
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.build.worker import claims
from kubeslurm.decide.nodeset.cordon import Cause
from kubeslurm.decide.nodeset.plan import Plan
from kubeslurm.decide.nodeset.worker import Worker
from kubeslurm.engine.key import Key
from kubeslurm.kube.client import Kube
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
        self._kube = kube
        self._events = events
        self._observer = observer
        self._failed_slots = failed_slots
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
        await self._release_claims(nodeset, [each for each in plan.remove if each.name in found.removed], plan)
        if found.removed:
            self._events.normal(nodeset, Event.SUCCESSFUL_DELETE, f"deleted {describe(found.removed)}")
        return found

    async def _release_claims(self, nodeset: NodeSet, gone: Iterable[Worker], plan: Plan) -> None:
        """Hands the claims of scaled-in workers to their pods, with which they then go; others keep theirs."""
        if nodeset.spec.retention.whenScaled != "Delete":
            return
        for worker in gone:
            if plan.leaving.get(worker.name) is not Cause.SCALE_IN:
                continue
            for name in claims.mounted(nodeset, worker.pod):
                owner = claims.owned_by(worker.pod)
                await self._kube.patch(PERSISTENT_VOLUME_CLAIM, Key(nodeset.namespace, name), owner)


def describe(names: Collection[str]) -> str:
    """The names of workers for an event, the first of many."""
    listed = sorted(names)
    more = f" and {len(listed) - 8} more" if len(listed) > 8 else ""
    return f"{len(listed)} workers: {', '.join(listed[:8])}{more}" if len(listed) > 1 else f"worker {listed[0]}"
