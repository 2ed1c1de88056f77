"""What the benchmark does to the cluster and sees of it: Kubernetes by watches, Slurm by its own commands."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable

from benchmarks.scale.ground import SET, Ground
from benchmarks.scale.slurm import Slurmctld
from kubeslurm.api import names, views
from kubeslurm.api.kinds import DEPLOYMENT, NODE, NODESET, POD
from kubeslurm.api.meta import Tree
from kubeslurm.cli.up.releases import SLURM_NAMESPACE
from kubeslurm.control import fan_out
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.transport.connection import Connection, connect

TICK = 0.1
TURN = 0.5  # seconds between two looks for workers that have to register
PATIENCE = 900.0  # seconds for whatever takes as long as there are workers, and a second more for each of them
STATE = "SlurmNodeState"


class Stage:
    """Acts and looks; a task beside it plays slurmd and makes the record of a worker that came back."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.connection = Connection(connect(ground.cluster.kubeconfig))
        self.caches = Caches(self.connection, namespaces=[SLURM_NAMESPACE])
        self._pods = self.caches.add(POD, labels={names.LABEL_INSTANCE: SET})
        self._nodesets = self.caches.add(NODESET)
        self._deployments = self.caches.add(DEPLOYMENT)
        self.kube = Kube(self.connection, self.caches, manager="benchmark")
        self.slurm = Slurmctld(0)
        self._changed = False

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Follows the cluster as long as the block lasts."""
        tasks = [asyncio.create_task(source.run()) for _, source in self.caches.reflectors]
        try:
            await self._pods.wait_synced()
            await self.until("slurmctld", self._find_slurmctld, within=300)
            await self.until("the operator", self.ground.ready, within=120)
            self._pods.subscribe(self._note)
            await asyncio.to_thread(self._register, [f"fake-{number}" for number in range(self.ground.workers)])
            tasks.append(asyncio.create_task(self._play_slurmd()))
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.connection.close()

    async def until(self, what: str, done: Callable[[], bool], *, within: float = 0.0) -> None:
        within = within or PATIENCE + self.ground.workers
        end = time.monotonic() + within
        while not done():
            assert time.monotonic() < end, f"gave up waiting for {what} after {within:.0f} s"
            await asyncio.sleep(TICK)

    @property
    def pods(self) -> Collection[views.Pod]:
        return tuple(self._pods)

    def shown(self, state: str) -> dict[str, views.Pod]:
        """The running pods that show a state of their Slurm node, by its name."""
        return {
            pod.spec.hostname: pod
            for pod in self._pods
            if pod.status.phase == "Running"
            and not pod.deleting
            and any(each.type == STATE + state for each in pod.status.conditions)
        }

    @property
    def updated(self) -> int:
        """Workers of the newest revision, by the NodeSet's own status."""
        found = self._nodesets.get(Key(SLURM_NAMESPACE, SET))
        if found is None or found.status.observedGeneration < found.metadata.generation:
            return 0
        return found.status.updatedReplicas

    def ready(self, deployment: str) -> int:
        """Pods of a Deployment that are ready."""
        found = self._deployments.get(Key(SLURM_NAMESPACE, deployment))
        return found.status.readyReplicas if found else 0

    async def change(self, spec: Tree) -> None:
        """Edits the NodeSet."""
        await self.kube.patch(NODESET, Key(SLURM_NAMESPACE, SET), {"spec": spec})

    async def cordon(self, hosts: Iterable[str], *, cordoned: bool) -> dict[str, float]:
        """Cordons or uncordons nodes; says when each was told."""
        told: dict[str, float] = {}

        async def tell(host: str) -> None:
            told[host] = time.monotonic()
            await self.kube.patch(NODE, Key("", host), {"spec": {"unschedulable": cordoned or None}})

        troubles = await fan_out.each(hosts, tell)
        assert not troubles, troubles[0]
        return told

    async def first_seen(self, wanted: Collection[str], seen: Callable[[], Iterable[str]]) -> dict[str, float]:
        """When each name was first seen, looked for as often as can be without getting in the way."""
        found: dict[str, float] = {}
        end = time.monotonic() + 300
        while len(found) < len(wanted):
            assert time.monotonic() < end, f"waited in vain for {sorted(set(wanted) - set(found))[:5]}"
            names_seen = await asyncio.to_thread(seen)
            now = time.monotonic()
            found |= {name: now for name in names_seen if name in wanted and name not in found}
            await asyncio.sleep(TICK)
        return found

    def drained(self) -> list[str]:
        return [name for name, state in self.slurm.states().items() if state.startswith("drain")]

    def serving(self) -> list[str]:
        return [name for name, state in self.slurm.states().items() if state.startswith("idle")]

    def _find_slurmctld(self) -> bool:
        pid = self.ground.container_pid("slurm-controller-0", "slurmctld")
        self.slurm = Slurmctld(pid)
        with contextlib.suppress(AssertionError):
            return bool(pid) and "UP" in self.slurm.run("scontrol", "ping")
        return False

    def _note(self, _key: Key, _old: views.Pod | None, _new: views.Pod | None) -> None:
        self._changed = True

    async def _play_slurmd(self) -> None:
        """Registers workers whose pod runs and whose record is gone; looks only after pods have changed."""
        looks = 0
        while True:
            await asyncio.sleep(TURN)
            looks = 4 if self._changed else looks - 1
            self._changed = False
            if looks <= 0:
                continue
            running = {pod.spec.hostname for pod in self._pods if pod.status.phase == "Running" and not pod.deleting}
            await asyncio.to_thread(self._register, sorted(running))

    def _register(self, wanted: list[str]) -> None:
        known = self.slurm.states()
        if missing := [name for name in wanted if name not in known]:
            self.slurm.register(missing)
