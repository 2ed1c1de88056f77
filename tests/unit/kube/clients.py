"""A client and its stores, on an API server in memory."""

import asyncio
from typing import Any

from kubeslurm.api.kinds import CONFIGMAP, POD
from kubeslurm.api.views import ConfigMap, Pod
from kubeslurm.engine.key import Key
from kubeslurm.engine.store import Store
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from tests.support.fake_apiserver import FakeApiServer
from tests.support.fake_storage import Address

KEY = Key("ns", "conf")
ADDRESS = Address("configmaps", "ns", "conf")
MANAGER = "kubeslurm-controller"


class Cluster:
    """An API server, and a client with stores that reflectors keep up to date."""

    def __init__(self, **connection: Any) -> None:
        self.server = FakeApiServer()
        self.connection = self.server.connection(**connection)
        self.caches = Caches(self.connection)
        self.maps: Store[Key, ConfigMap] = self.caches.add(CONFIGMAP)
        self.pods: Store[Key, Pod] = self.caches.add(POD, labels={"app": "slurmd"})
        self.kube = Kube(self.connection, self.caches, manager=MANAGER)
        self.tasks: list[asyncio.Task[None]] = []

    async def follow(self) -> None:
        self.tasks = [asyncio.create_task(reflector.run()) for _, reflector in self.caches.reflectors]
        for _, store in self.caches.stores:
            await store.wait_synced()

    async def settle(self) -> None:
        await asyncio.sleep(0.1)

    @property
    def applies(self) -> int:
        return self.server.count("PATCH", "force=true")
