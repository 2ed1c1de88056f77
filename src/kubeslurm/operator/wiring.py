"""The composition root of the operator: creates all parts and connects them."""

import asyncio
import uuid

from kubeslurm.api import kinds
from kubeslurm.control.registration import Context
from kubeslurm.engine.controller import Controller
from kubeslurm.engine.key import Key
from kubeslurm.engine.manager import Manager
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.events import Events
from kubeslurm.kube.fence import Fence
from kubeslurm.kube.leader import Leader
from kubeslurm.kube.transport.connection import Connection, connect
from kubeslurm.operator import cache_filters
from kubeslurm.operator.controllers import concurrency, enabled, options
from kubeslurm.operator.http.access import permitted
from kubeslurm.operator.leadership.election import Election
from kubeslurm.operator.leadership.holders import Holders
from kubeslurm.operator.leadership.other_operators import LEASE_NAME, OtherOperators
from kubeslurm.operator.process import add_servers, kubeconfig, run_until
from kubeslurm.operator.rbac import OTHER_OPERATORS, cached
from kubeslurm.operator.settings.model import OperatorSettings
from kubeslurm.slurm.clusters import Clusters


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
        # An operator of selected namespaces shares the cluster with others by design.
        others = None if settings.namespaces else self._others(own)
        election = Election(self.leader, others, lambda: permitted(self.connection, OTHER_OPERATORS[0]))
        self.manager = Manager(gate=election.won)
        self._add_controllers(settings)
        self.manager.add_source("election", election)
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

    def _others(self, own: Key) -> OtherOperators:
        caches = Caches(self.connection)
        leases = caches.add(kinds.LEASE, fields=f"metadata.name={LEASE_NAME}")
        ((_, source),) = caches.reflectors
        clock = asyncio.get_running_loop().time
        return OtherOperators(leases, source, own, Holders(self.connection, clock).can_act, clock)

    def _add_controllers(self, settings: OperatorSettings) -> None:
        for kind in cached():
            self.caches.add(kind, keep=cache_filters.of(kind))
        for name, store in self.caches.stores:
            self.manager.add_store(name, store)
        kube, given = Kube(self.connection, self.caches, manager="kubeslurm"), options(settings)
        for each in enabled(settings):
            each.add_indices(self.caches)
            context = Context(kube.named(f"kubeslurm-{each.name}"), self.caches, self.clusters, self.events, given)
            controller = Controller(
                each.name, each.make(context).reconcile, concurrency=concurrency(settings, each), window=each.window
            )
            each.start_watches(context, controller)
            self.manager.add_controller(controller)
