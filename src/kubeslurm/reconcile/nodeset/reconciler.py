"""Keeps the pods and the Slurm nodes of a NodeSet as declared, and never at the expense of a running job."""

import time

from kubeslurm.api import names
from kubeslurm.api.kinds import CONTROLLER, NODESET
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.control import references, status
from kubeslurm.control.registration import Context
from kubeslurm.decide.nodeset.facts import Facts
from kubeslurm.decide.nodeset.plan import decide
from kubeslurm.decide.nodeset.slurm import reservation
from kubeslurm.engine.controller import Requeue
from kubeslurm.engine.key import Key
from kubeslurm.reconcile.nodeset.act import Act
from kubeslurm.reconcile.nodeset.memory import FailedSlots
from kubeslurm.reconcile.nodeset.observe import Observer
from kubeslurm.reconcile.nodeset.pass_interval import PassInterval
from kubeslurm.report import nodeset as report
from kubeslurm.report.reasons import Reason

SOON, LATER = 5.0, 60.0


class NodeSetReconciler:
    """One pass over one NodeSet: observe, decide, act, report."""

    def __init__(self, context: Context) -> None:
        self.kube = context.kube
        self.caches = context.caches
        self.interval = PassInterval()
        self.failed_slots = FailedSlots(time.monotonic)
        self.observer = Observer(context.caches, context.clusters, context.options, self.failed_slots)
        self.act = Act(context, self.observer, self.failed_slots)

    async def reconcile(self, key: Key) -> Requeue | None:
        nodeset = self.caches.store(NODESET).get(key)
        if nodeset is None:
            return None  # gone: its finalizer was released when the last pod was

        if nodeset.deleting and await self.act.owners.are_kept(nodeset):
            return await self.release(nodeset)
        if pause := self.interval.remaining(key):
            return Requeue(after=pause, resets_backoff=False)
        with self.interval.measured(key):
            observed = self.observer.read(nodeset)
        controller = self.caches.store(CONTROLLER).get(Key(*nodeset.controller_key))
        if nodeset.deleting and is_over(nodeset, controller, observed.facts):
            return await self.release(nodeset)
        if controller is None and not nodeset.deleting:
            return await self.blocked(nodeset, observed.facts)
        if not nodeset.deleting:
            nodeset = await self.kube.add_finalizer(NODESET, nodeset, names.FINALIZER)
        observed = await self.observer.with_job_ends(observed)

        plan = decide(nodeset, observed.facts)
        siblings = references.nodesets(self.caches, Key(*nodeset.controller_key))
        outcome = await self.act.carry_out(controller, nodeset, siblings, observed, plan)

        tree = report.status(nodeset, self.observer.current(nodeset, observed), plan, outcome)
        await status.write(self.kube, NODESET, nodeset, tree)
        return Requeue(after=SOON if plan.is_waiting or outcome.failures or nodeset.deleting else LATER)

    async def release(self, nodeset: NodeSet) -> Requeue | None:
        """Lets the deletion of the NodeSet go on."""
        self.act.forget(nodeset)
        if reservation.is_held(nodeset):
            await self.kube.remove_finalizer(NODESET, nodeset, names.RESERVATION_FINALIZER)
            return Requeue(after=SOON)
        await self.kube.remove_finalizer(NODESET, nodeset, names.FINALIZER)
        return None

    async def blocked(self, nodeset: NodeSet, facts: Facts) -> Requeue:
        """Reports that the Controller is missing."""
        name = nodeset.spec.controllerRef.name
        text = f"Controller {nodeset.namespace}/{name} does not exist: create it, or correct spec.controllerRef"
        tree = report.blocked(nodeset, facts, Reason.CONTROLLER_NOT_FOUND, text)
        await status.write(self.kube, NODESET, nodeset, tree)
        return Requeue(after=LATER)


def is_over(nodeset: NodeSet, controller: Controller | None, facts: Facts) -> bool:
    """Whether nothing of a deleted NodeSet is left; old records and reservations cannot hold it without its cluster."""
    forced = nodeset.metadata.annotations.get(names.FORCE_DELETE) == "true"
    free = controller is None or controller.deleting or forced or not reservation.is_held(nodeset)
    return free and not facts.workers and not facts.records
