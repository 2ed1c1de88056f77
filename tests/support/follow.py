"""A store, a reflector and a controller on a real API server, and a check that they agree with it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Generic, TypeVar

from kubeslurm.api.kinds import Kind
from kubeslurm.api.resource import Resource
from kubeslurm.engine.controller import Controller
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.objects import key_of
from kubeslurm.kube.transport.connection import Connection, connect
from tests.support.waiting import WITHIN

T = TypeVar("T", bound=Resource)


class Follower(Generic[T]):
    """Follows one kind and records which version each key had when it was last reconciled."""

    def __init__(self, kind: Kind[T], connection: Connection, namespace: str = "") -> None:
        self.kind = kind
        self.namespace = namespace
        self.caches = Caches(connection, namespaces=[namespace] if namespace else ())
        self.store = self.caches.add(kind)
        self.kube = Kube(connection, self.caches, manager="kubeslurm-test")
        self.reconciled: dict[Key, str | None] = {}
        self.controller = Controller(f"follow-{kind.plural}", self._reconcile, window=0.05)
        self.controller.watch(self.store, lambda obj: [key_of(obj)])

    async def _reconcile(self, key: Key) -> None:
        obj = self.store.get(key)
        self.reconciled[key] = obj.metadata.resourceVersion if obj is not None else None

    @property
    def versions(self) -> dict[Key, str]:
        return {key_of(obj): obj.metadata.resourceVersion for obj in self.store}

    async def converge(self, direct: Kube, *, timeout: float = WITHIN) -> None:
        """Wait until the store equals a fresh list and every key was reconciled in its last version."""
        listed: dict[Key, str] | None = None
        try:
            async with asyncio.timeout(timeout):
                while self.versions != listed or self._last_reconciled != listed:
                    await asyncio.sleep(0.1)
                    # Listed again each time: the server's own controllers write here too.
                    objs = await direct.list(self.kind, self.namespace)
                    listed = {key_of(obj): obj.metadata.resourceVersion for obj in objs}
        except TimeoutError:
            assert self.versions == listed, "the store does not equal a fresh list"
            assert self._last_reconciled == listed, "a changed key was not reconciled"
            raise

    @property
    def _last_reconciled(self) -> dict[Key, str]:
        return {key: version for key, version in self.reconciled.items() if version is not None}


@asynccontextmanager
async def following(kind: Kind[T], kubeconfig: Path, namespace: str = "") -> AsyncIterator[Follower[T]]:
    connection = Connection(connect(kubeconfig), timeout=60)
    follower = Follower(kind, connection, namespace)
    sources = [reflector.run() for _, reflector in follower.caches.reflectors]
    tasks = [asyncio.create_task(work) for work in (*sources, follower.controller.run())]
    try:
        async with asyncio.timeout(WITHIN):
            await follower.store.wait_synced()
        yield follower
        assert not any(task.done() for task in tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await connection.close()
