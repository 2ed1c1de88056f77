"""Keeps the pods and the Slurm nodes of a NodeSet as declared, and never at the expense of a running job."""

import asyncio
from collections.abc import Collection, Iterable

from kubeslurm.api import names, views
from kubeslurm.api.kinds import CONTROLLER, NODE, NODESET, POD, SECRET
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.control import references, status
from kubeslurm.decide.nodeset import health
from kubeslurm.decide.nodeset.plan import Plan, decide
from kubeslurm.engine.controller import Controller as Workers
from kubeslurm.engine.controller import Requeue
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.events import Events
from kubeslurm.reconcile.nodeset import observe
from kubeslurm.reconcile.nodeset.act import Pods, Settings
from kubeslurm.reconcile.nodeset.observe import Observer, View
from kubeslurm.reconcile.nodeset.spacing import Pace
from kubeslurm.report import nodeset as report
from kubeslurm.report.nodeset import Reason, Troubles
from kubeslurm.slurm.clusters import Clusters, SlurmCluster
from kubeslurm.slurm.rest.models import Node

SOON, LATER = 5.0, 60.0
ORPHAN = "orphan"  # the finalizer behind --cascade=orphan


class NodeSetReconciler:
    """One pass over one NodeSet: observe, decide, act, report."""

    def __init__(
        self,
        kube: Kube,
        caches: Caches,
        clusters: Clusters,
        events: Events,
        *,
        watched_conditions: Collection[str] = (),
        mirrored: bool = False,
        domain: str = names.DOMAIN,
    ) -> None:
        self.kube = kube
        self.caches = caches
        self.clusters = clusters
        self.observer = Observer(caches, clusters)
        self.pace = Pace()
        self.watched_conditions = frozenset(watched_conditions)
        self.pods = Pods(kube, events, self.observer, Settings(self.watched_conditions, mirrored, domain))

    async def reconcile(self, key: Key) -> Requeue | None:
        nodeset = self.caches.store(NODESET).get(key)
        if nodeset is None:
            return None  # gone: its finalizer was released when the last pod was

        if nodeset.deleting and ORPHAN in nodeset.metadata.finalizers:
            return await self.release(nodeset)  # the user keeps the pods
        if rest := self.pace.wait(key):
            return Requeue(after=rest, forgives=False)
        with self.pace.measured(key):
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
        tree = report.blocked(nodeset, view.seen, Reason.CONTROLLER_MISSING, text)
        await status.write(self.kube, NODESET, nodeset, tree)
        return Requeue(after=LATER)

    def siblings(self, nodeset: NodeSet) -> tuple[NodeSet, ...]:
        """All NodeSets of the cluster; together they own what their workers share."""
        return references.nodesets(self.caches, Key(*nodeset.controller_key))

    def is_over(self, view: View) -> bool:
        """Whether nothing of a deleted NodeSet is left; old records cannot hold it when Slurm is gone as well."""
        return not view.seen.workers and not view.seen.records

    def watch(self, workers: Workers) -> None:
        """Says which changes concern which NodeSet."""
        references.index(self.caches)
        workers.watch(self.caches.store(NODESET), lambda nodeset: (Key(*nodeset.key),))
        workers.watch(self.caches.store(POD), self._of_pod)
        self.caches.store(NODE).subscribe(lambda _key, old, new: self._on_node(workers, old, new))
        workers.watch(self.caches.store(CONTROLLER), self._of_controller)
        workers.watch(self.caches.store(SECRET), self._of_secret)
        self.clusters.on_start(lambda cluster: self._follow(workers, cluster))

    def _of_pod(self, pod: views.Pod) -> Iterable[Key]:
        return (Key.parse(owner) for owner in observe.owner(pod))

    def _on_node(self, workers: Workers, old: views.Node | None, new: views.Node | None) -> None:
        """A Node's heartbeat is no news; what it was told, its labels and the conditions we watch are."""
        if old is None or new is None or self._told(old) != self._told(new):
            for key in {key for node in (old, new) if node is not None for key in self._of_node(node)}:
                workers.enqueue(key)

    def _told(self, node: views.Node) -> tuple[object, ...]:
        watched = tuple(each for each in node.status.conditions if each.type in self.watched_conditions)
        return (node.spec, node.metadata.labels, node.metadata.annotations, node.deleting, watched)

    def _of_node(self, node: views.Node) -> Iterable[Key]:
        for pod in self.caches.store(POD).by(observe.BY_NODE, node.name):
            yield from self._of_pod(pod)
        for nodeset in self.caches.store(NODESET):
            if nodeset.spec.scalingMode == "DaemonSet":
                yield Key(*nodeset.key)

    def _of_controller(self, controller: Controller) -> Iterable[Key]:
        return (Key(*each.key) for each in references.nodesets(self.caches, Key(*controller.key)))

    def _of_secret(self, secret: views.Secret) -> Iterable[Key]:
        for nodeset in self.caches.store(NODESET):
            ssh = nodeset.spec.ssh
            controller = self.caches.store(CONTROLLER).get(Key(*nodeset.controller_key))
            used = {controller.spec.slurmKeyRef} if controller is not None else set()
            if ssh and ssh.enabled:
                used.add(ssh.sssdConfRef)
            if secret.namespace == nodeset.namespace and secret.name in {ref.name for ref in used if ref}:
                yield Key(*nodeset.key)

    def _follow(self, workers: Workers, cluster: SlurmCluster) -> None:
        """A changed Slurm node concerns the NodeSet of its pod; a lost or found Slurm concerns all of them."""

        def of_slurm_node(node: Node) -> Iterable[Key]:
            found = {Key.parse(owner) for owner in observe.pod_owner(node)}
            name = f"{cluster.key.namespace}/{cluster.key.name}/{node.name}"
            for pod in self.caches.store(POD).by(observe.BY_SLURM_NAME, name):
                found.update(self._of_pod(pod))
            if not node.comment:
                nodesets = references.nodesets(self.caches, cluster.key)
                found.update(Key(*each.key) for each in nodesets if health.unnamed(each, (node,)))
            return found

        def everybody() -> None:
            for nodeset in references.nodesets(self.caches, cluster.key):
                workers.enqueue(Key(*nodeset.key))

        workers.watch(cluster.snapshot.store, of_slurm_node)
        cluster.snapshot.on_health(everybody)
