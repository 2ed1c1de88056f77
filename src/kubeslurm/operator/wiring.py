"""The composition root of the operator: what exists, and who knows whom."""

import asyncio
import uuid
from collections.abc import Callable
from functools import partial
from typing import Protocol

import msgspec

from kubeslurm.api import kinds
from kubeslurm.decide.node_drain import Mode
from kubeslurm.decide.nodeset.drain import CORDON
from kubeslurm.engine.controller import Controller, Requeue
from kubeslurm.engine.key import Key
from kubeslurm.engine.manager import Manager
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.events import Events
from kubeslurm.kube.fence import Fence
from kubeslurm.kube.leader import Leader
from kubeslurm.kube.transport.connection import Connection, connect
from kubeslurm.operator import cache_filters
from kubeslurm.operator.election import Candidacy
from kubeslurm.operator.http.access import permitted
from kubeslurm.operator.other_operators import LEASE_NAME, Rivals
from kubeslurm.operator.process import add_servers, kubeconfig, run_until
from kubeslurm.operator.rbac import RIVALS, watched
from kubeslurm.operator.settings import OperatorSettings
from kubeslurm.reconcile.accounting.reconciler import AccountingReconciler
from kubeslurm.reconcile.controller.reconciler import ControllerReconciler
from kubeslurm.reconcile.loginset.reconciler import LoginSetReconciler
from kubeslurm.reconcile.nodedrain.reconciler import NodeMarker
from kubeslurm.reconcile.nodeset.reconciler import NodeSetReconciler
from kubeslurm.reconcile.restapi.reconciler import RestApiReconciler
from kubeslurm.reconcile.slurmcluster.reconciler import SlurmReconciler
from kubeslurm.reconcile.token.reconciler import TokenReconciler
from kubeslurm.slurm.clusters import Clusters


class Reconciler(Protocol):
    """What one kind brings."""

    async def reconcile(self, key: Key) -> Requeue | None: ...

    def watch(self, controller: Controller) -> None: ...


class Part(msgspec.Struct, frozen=True):
    """One controller: how it is made, how many passes run at once, how far apart those of one object start."""

    name: str
    make: Callable[[Kube, Caches, Clusters, Events], Reconciler]
    workers: int
    window: float = 0.0


def parts(settings: OperatorSettings) -> tuple[Part, ...]:
    """All controllers of the operator."""
    nodeset = partial(
        NodeSetReconciler,
        watched_conditions=settings.propagated_node_conditions,
        mirrored=settings.slurm_drain_on_node == CORDON,
        domain=settings.cluster_domain,
    )
    return (
        Part("accounting", AccountingReconciler, settings.accounting_workers),
        Part("controller", ControllerReconciler, settings.controller_workers),
        Part("loginset", partial(LoginSetReconciler, domain=settings.cluster_domain), settings.loginset_workers),
        Part("restapi", RestApiReconciler, settings.restapi_workers),
        Part("slurm", SlurmReconciler, settings.slurmclient_workers),
        Part("token", TokenReconciler, settings.token_workers),
        # Every change of a pod concerns its NodeSet as a whole: a pass for each would walk all pods each time.
        Part("nodeset", nodeset, settings.nodeset_workers, window=0.3),
        *_marks(settings),
    )


def _marks(settings: OperatorSettings) -> tuple[Part, ...]:
    if not settings.slurm_drain_on_node:
        return ()
    mode = msgspec.convert(settings.slurm_drain_on_node, type=Mode)
    return (Part("marks", partial(NodeMarker, mode=mode), settings.nodeset_workers),)


class Operator:
    """Everything in the process, ready to run."""

    def __init__(self, settings: OperatorSettings) -> None:
        fence = Fence() if settings.leader_elect else None
        self.connection = Connection(connect(kubeconfig(settings)), fence=fence)
        self.caches = Caches(self.connection, namespaces=settings.namespaces)
        self.clusters = Clusters(admit=fence.admit if fence else None)
        self.events = Events(self.connection)
        own = Key(settings.lease_namespace, LEASE_NAME)
        self.leader = self._leader(fence, own, settings.pod_name) if fence else None
        # Whoever serves selected namespaces shares the cluster with others by design.
        rivals = None if settings.namespaces else self._rivals(own)
        candidacy = Candidacy(self.leader, rivals, lambda: permitted(self.connection, RIVALS[0]))
        self.manager = Manager(gate=candidacy.won)
        self._add_controllers(settings)
        self.manager.add_source("candidacy", candidacy)
        self.manager.add_source("events", self.events)
        for name, source in self.caches.reflectors:
            self.manager.add_source(name, source)
        add_servers(self.manager, settings, self.connection, lambda: self.manager.unsynced)

    async def run(self, stop: asyncio.Event) -> None:
        """Works until `stop` is set, then ends what runs and hands the Lease over."""
        try:
            await run_until(self.manager, stop)
        finally:
            await self.clusters.close()
            if self.leader is not None:
                await self.leader.release()
            await self.connection.close()

    def _leader(self, fence: Fence, own: Key, pod: str) -> Leader:
        # The pods of a Deployment may share one hostname, so the pod's name says who leads.
        identity = f"{pod}_{uuid.uuid4()}" if pod else ""
        return Leader(self.connection, fence, namespace=own.namespace, name=own.name, identity=identity)

    def _rivals(self, own: Key) -> Rivals:
        caches = Caches(self.connection)
        leases = caches.add(kinds.LEASE, fields=f"metadata.name={LEASE_NAME}")
        ((_, source),) = caches.reflectors
        return Rivals(leases, source, own, asyncio.get_running_loop().time)

    def _add_controllers(self, settings: OperatorSettings) -> None:
        for kind in watched():
            self.caches.add(kind, keep=cache_filters.of(kind))
        for name, store in self.caches.stores:
            self.manager.add_store(name, store)
        kube = Kube(self.connection, self.caches, manager="kubeslurm")
        for part in parts(settings):
            reconciler = part.make(kube.named(f"kubeslurm-{part.name}"), self.caches, self.clusters, self.events)
            controller = Controller(part.name, reconciler.reconcile, workers=part.workers, window=part.window)
            reconciler.watch(controller)
            self.manager.add_controller(controller)
