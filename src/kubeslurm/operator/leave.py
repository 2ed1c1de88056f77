"""Prepares the removal of the operator: no object may keep a finalizer that nobody removes."""

import asyncio
import datetime as dt
from collections.abc import Callable
from typing import Any

import structlog

from kubeslurm.api.kinds import CONFIGMAP, CONTROLLER, DEPLOYMENT, LEASE, Kind
from kubeslurm.api.names import FINALIZER, second_owner
from kubeslurm.api.resource import Resource
from kubeslurm.api.views import Lease
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.errors import Conflict, NotFound
from kubeslurm.kube.transport.connection import Connection, connect
from kubeslurm.operator.leadership.other_operators import LEASE_NAME
from kubeslurm.operator.process import StillBusyError, kubeconfig
from kubeslurm.operator.rbac import served
from kubeslurm.operator.settings.model import LeaveSettings

CHECK_INTERVAL = 1.0
EXPIRED = dt.timedelta(seconds=60)
log = structlog.get_logger("kubeslurm.operator")


class Leave:
    """Lets deletions under way finish, stops the operator, then releases the objects that stay behind.

    The order matters: a deletion under way may be draining workers, and releasing it would end their jobs; an operator
    that still runs would add its finalizers again.
    """

    def __init__(self, settings: LeaveSettings, kube: Kube) -> None:
        self._settings = settings
        self._kube = kube

    async def run(self) -> None:
        await self._until(self._deletions, self._settings.wait)
        await self._stop_operator()
        released = await self._release()
        log.info("the operator may be removed; clusters run on without it", released=released)

    async def _deletions(self) -> str:
        held = [f"{kind} {Key(*obj.key)}" for kind, obj in await self._held() if obj.deleting]
        return f"still being deleted: {', '.join(held)}" if held else ""

    async def _stop_operator(self) -> None:
        key = Key(self._settings.namespace, self._settings.deployment)
        if await self._kube.get(DEPLOYMENT, key) is None:
            return
        await self._kube.patch(DEPLOYMENT, key, {"spec": {"replicas": 0}})
        await self._until(self._running_operator, self._settings.wait)

    async def _running_operator(self) -> str:
        namespace = self._settings.namespace
        deployment = await self._kube.get(DEPLOYMENT, Key(namespace, self._settings.deployment))
        lease = await self._kube.get(LEASE, Key(self._settings.lease_namespace, LEASE_NAME))
        if deployment is not None and deployment.status.replicas:
            return "the operator has not stopped yet"
        return f"{lease.spec.holderIdentity} still leads" if lease and self._is_held(lease) else ""

    def _is_held(self, lease: Lease) -> bool:
        """A graceful stop gives the Lease back; one that was killed leaves it behind, to expire."""
        renewed = lease.spec.renewTime
        return bool(lease.spec.holderIdentity and renewed and dt.datetime.now(dt.UTC) - renewed < EXPIRED)

    async def _release(self) -> int:
        released: set[tuple[str, tuple[str, str]]] = set()
        while held := await self._held():
            for kind, obj in held:
                try:
                    if kind is CONTROLLER:  # nobody else would delete it, and with it its cluster could never be
                        await self._kube.delete(CONFIGMAP, Key(obj.namespace, second_owner(obj.name)))
                    await self._kube.remove_finalizer(kind, obj, FINALIZER)
                    released.add((kind.kind, obj.key))
                except Conflict:  # changed since it was listed; the next list has it again
                    log.debug("changed meanwhile", kind=kind.kind, key=str(Key(*obj.key)))
        return len(released)

    async def _held(self) -> list[tuple[Kind[Any], Resource]]:
        return [
            (kind, obj)
            for kind in served()
            for namespace in self._settings.namespaces or ("",)
            for obj in await self._listed(kind, namespace)
            if FINALIZER in obj.metadata.finalizers
        ]

    async def _listed(self, kind: Kind[Any], namespace: str) -> list[Any]:
        try:
            return await self._kube.list(kind, namespace)
        except NotFound:  # the definition is gone, and with it every object
            return []

    async def _until(self, obstacles: Callable[[], Any], seconds: float) -> None:
        """Checks until nothing is left to wait for; raises what is when the time is over."""
        logged = ""
        try:
            async with asyncio.timeout(seconds):
                while obstacle := await obstacles():
                    if obstacle != logged:
                        log.info("waiting", reason=obstacle)
                    logged = obstacle
                    await asyncio.sleep(CHECK_INTERVAL)
        except TimeoutError:
            raise StillBusyError(
                f"{logged}. Let that finish first; or use --no-hooks and remove the finalizer {FINALIZER} by hand."
            ) from None


async def leave(settings: LeaveSettings, _stop: asyncio.Event) -> None:
    """The whole process."""
    connection = Connection(connect(kubeconfig(settings)))
    try:
        await Leave(settings, Kube(connection, Caches(connection), manager="kubeslurm-leave")).run()
    finally:
        await connection.close()
