"""Keeps the pods and the Slurm nodes of a NodeSet as declared, and never at the expense of a running job."""

import asyncio

from kubeslurm.api import names
from kubeslurm.api.kinds import CONTROLLER, NODESET
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.control import references, status
from kubeslurm.control.registration import Context
from kubeslurm.decide.nodeset.plan import Plan, decide
from kubeslurm.engine.controller import Requeue
from kubeslurm.engine.key import Key
from kubeslurm.reconcile.nodeset.act import Pods
from kubeslurm.reconcile.nodeset.observe import Observer, View
from kubeslurm.reconcile.nodeset.pass_interval import PassInterval
from kubeslurm.report import nodeset as report
from kubeslurm.report.nodeset import Troubles
from kubeslurm.report.reasons import Reason

SOON, LATER = 5.0, 60.0
ORPHAN = "orphan"  # the finalizer behind --cascade=orphan


class NodeSetReconciler:
    """One pass over one NodeSet: observe, decide, act, report."""

    def __init__(self, context: Context) -> None:
        self.kube = context.kube
        self.caches = context.caches
        self.observer = Observer(context.caches, context.clusters)
        self.interval = PassInterval()
        self.pods = Pods(context.kube, context.events, self.observer, context.options)

    async def reconcile(self, key: Key) -> Requeue | None:
        nodeset = self.caches.store(NODESET).get(key)
        if nodeset is None:
            return None  # gone: its finalizer was released when the last pod was

        if nodeset.deleting and ORPHAN in nodeset.metadata.finalizers:
            return await self.release(nodeset)  # the user keeps the pods
        if pause := self.interval.remaining(key):
            return Requeue(after=pause, resets_backoff=False)
        with self.interval.measured(key):
            view = self.observer.view(nodeset)
        controller = self.caches.store(CONTROLLER).get(Key(*nodeset.controller_key))
        if nodeset.deleting and self.is_over(view):
            return await self.release(nodeset)
        if controller is None and not nodeset.deleting:
            return await self.blocked(nodeset, view)
        if not nodeset.deleting:
            nodeset = await self.kube.add_finalizer(NODESET, nodeset, names.FINALIZER)

        plan = decide(nodeset, view.seen, self.pods.policy(nodeset, view))
        troubles = await self.act(controller, nodeset, view, plan)

        # As it is after our own writes.
        seen = view.seen if self.observer.is_current(view) else self.observer.view(nodeset).seen
        tree = report.status(nodeset, seen, plan, troubles, view.revision.collisions)
        await status.write(self.kube, NODESET, nodeset, tree)
        return Requeue(after=SOON if plan.is_waiting or troubles.errors or nodeset.deleting else LATER)

    async def act(self, controller: Controller | None, nodeset: NodeSet, view: View, plan: Plan) -> Troubles:
        """Carries out the plan in the one safe order; what fails for one worker is told and holds up no other.

        Slurm learns first: a node must be drained before its pod may go, and rid of its old record before a new one.
        """
        errors: tuple[str, ...] = ()
        if controller is not None and not nodeset.deleting:
            errors += await self.pods.prepare(nodeset, self.siblings(nodeset), view)
        drained, marked = await asyncio.gather(
            self.pods.drain_cordoned(view, plan), self.pods.mark(nodeset, view, plan)
        )
        errors += drained + marked
        errors += await self.pods.tell_slurm(nodeset, view, plan)
        outcome = await self.pods.remove(nodeset, view, plan)
        if controller is not None:
            errors += await self.pods.create(controller, nodeset, view, plan)
        return Troubles(slurm=view.failure, refused=outcome.refused, errors=(*errors, *outcome.errors))

    async def release(self, nodeset: NodeSet) -> Requeue | None:
        """Lets the deletion of the NodeSet go on."""
        self.pods.forget(nodeset)
        await self.kube.remove_finalizer(NODESET, nodeset, names.FINALIZER)
        return None

    async def blocked(self, nodeset: NodeSet, view: View) -> Requeue:
        name = nodeset.spec.controllerRef.name
        text = f"Controller {nodeset.namespace}/{name} does not exist: create it, or correct spec.controllerRef"
        tree = report.blocked(nodeset, view.seen, Reason.CONTROLLER_NOT_FOUND, text)
        await status.write(self.kube, NODESET, nodeset, tree)
        return Requeue(after=LATER)

    def siblings(self, nodeset: NodeSet) -> tuple[NodeSet, ...]:
        """All NodeSets of the cluster; together they own what their workers share."""
        return references.nodesets(self.caches, Key(*nodeset.controller_key))

    def is_over(self, view: View) -> bool:
        """Whether nothing of a deleted NodeSet is left; old records cannot hold it when Slurm is gone as well."""
        return not view.seen.workers and not view.seen.records
