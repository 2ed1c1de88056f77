"""Changes the cluster of the scale benchmark and observes it: Kubernetes by watches, Slurm by its commands."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable

from benchmarks.scale.environment import NODESET as NODESET_NAME
from benchmarks.scale.environment import Environment
from benchmarks.scale.slurmctld import Slurmctld
from kubeslurm.api import names, views
from kubeslurm.api.kinds import DEPLOYMENT, NODE, NODESET, POD
from kubeslurm.api.meta import Tree
from kubeslurm.cli.up.releases import SLURM_NAMESPACE
from kubeslurm.control import fan_out
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.transport.connection import Connection, connect

POLL_INTERVAL = 0.1
REGISTER_INTERVAL = 0.5  # seconds between checks for workers whose Slurm node is missing
TIMEOUT = 900.0  # seconds, plus one for each worker
STATE_PREFIX = "SlurmNodeState"


class Driver:
    """Changes and observes the cluster. A task registers Slurm nodes of new workers, in place of their slurmd."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.connection = Connection(connect(environment.cluster.kubeconfig))
        self.caches = Caches(self.connection, namespaces=[SLURM_NAMESPACE])
        self._pods = self.caches.add(POD, labels={names.LABEL_INSTANCE: NODESET_NAME})
        self._nodesets = self.caches.add(NODESET)
        self._deployments = self.caches.add(DEPLOYMENT)
        self.kube = Kube(self.connection, self.caches, manager="benchmark")
        self.slurm = Slurmctld(0)
        self._changed = False

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Watch the cluster for the duration of the block."""
        tasks = [asyncio.create_task(source.run()) for _, source in self.caches.reflectors]
        try:
            await self._pods.wait_synced()
            await self.wait_until("slurmctld", self._find_slurmctld, timeout=300)
            await self.wait_until("the operator", self.environment.ready, timeout=120)
            self._pods.subscribe(self._on_pod_change)
            await asyncio.to_thread(self._register, [f"fake-{number}" for number in range(self.environment.workers)])
            tasks.append(asyncio.create_task(self._register_workers()))
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.connection.close()

    async def wait_until(self, what: str, done: Callable[[], bool], *, timeout: float = 0.0) -> None:
        timeout = timeout or TIMEOUT + self.environment.workers
        end = time.monotonic() + timeout
        while not done():
            assert time.monotonic() < end, f"timed out waiting for {what} after {timeout:.0f} s"
            await asyncio.sleep(POLL_INTERVAL)

    @property
    def pods(self) -> Collection[views.Pod]:
        return tuple(self._pods)

    def pods_in_state(self, state: str) -> dict[str, views.Pod]:
        """Running pods with the condition for this state of their Slurm node, by Slurm node name."""
        return {
            pod.spec.hostname: pod
            for pod in self._pods
            if pod.status.phase == "Running"
            and not pod.deleting
            and any(each.type == STATE_PREFIX + state for each in pod.status.conditions)
        }

    @property
    def updated(self) -> int:
        """Workers of the newest revision, from the status of the NodeSet."""
        found = self._nodesets.get(Key(SLURM_NAMESPACE, NODESET_NAME))
        if found is None or found.status.observedGeneration < found.metadata.generation:
            return 0
        return found.status.updatedReplicas

    def ready_replicas(self, deployment: str) -> int:
        """Ready pods of a Deployment."""
        found = self._deployments.get(Key(SLURM_NAMESPACE, deployment))
        return found.status.readyReplicas if found else 0

    async def patch_nodeset(self, spec: Tree) -> None:
        """Change the spec of the NodeSet."""
        await self.kube.patch(NODESET, Key(SLURM_NAMESPACE, NODESET_NAME), {"spec": spec})

    async def cordon(self, hosts: Iterable[str], *, cordoned: bool) -> dict[str, float]:
        """Cordon or uncordon nodes; returns when each request was sent."""
        sent: dict[str, float] = {}

        async def patch(host: str) -> None:
            sent[host] = time.monotonic()
            await self.kube.patch(NODE, Key("", host), {"spec": {"unschedulable": cordoned or None}})

        errors = await fan_out.for_each(hosts, patch)
        assert not errors, errors[0]
        return sent

    async def first_seen(self, expected: Collection[str], list_names: Callable[[], Iterable[str]]) -> dict[str, float]:
        """When `list_names` first returned each of the expected names."""
        found: dict[str, float] = {}
        end = time.monotonic() + 300
        while len(found) < len(expected):
            assert time.monotonic() < end, f"timed out waiting for {sorted(set(expected) - set(found))[:5]}"
            listed = await asyncio.to_thread(list_names)
            now = time.monotonic()
            found |= {name: now for name in listed if name in expected and name not in found}
            await asyncio.sleep(POLL_INTERVAL)
        return found

    def drained_nodes(self) -> list[str]:
        return [name for name, state in self.slurm.states().items() if state.startswith("drain")]

    def idle_nodes(self) -> list[str]:
        return [name for name, state in self.slurm.states().items() if state.startswith("idle")]

    def _find_slurmctld(self) -> bool:
        pid = self.environment.container_pid("slurm-controller-0", "slurmctld")
        self.slurm = Slurmctld(pid)
        with contextlib.suppress(AssertionError):
            return bool(pid) and "UP" in self.slurm.run("scontrol", "ping")
        return False

    def _on_pod_change(self, _key: Key, _old: views.Pod | None, _new: views.Pod | None) -> None:
        self._changed = True

    async def _register_workers(self) -> None:
        """Create missing Slurm nodes of running workers; checks only after pods have changed."""
        checks = 0
        while True:
            await asyncio.sleep(REGISTER_INTERVAL)
            checks = 4 if self._changed else checks - 1
            self._changed = False
            if checks <= 0:
                continue
            running = {pod.spec.hostname for pod in self._pods if pod.status.phase == "Running" and not pod.deleting}
            await asyncio.to_thread(self._register, sorted(running))

    def _register(self, workers: list[str]) -> None:
        known = self.slurm.states()
        if missing := [name for name in workers if name not in known]:
            self.slurm.register(missing)
