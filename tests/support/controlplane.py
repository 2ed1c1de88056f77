"""The control plane's reconcilers on an API server in memory, with a fake kubelet and a fake slurmctld."""

import asyncio
import base64
import copy
from typing import Any

from kubeslurm.api import kinds, names
from kubeslurm.api.meta import Tree
from kubeslurm.control.registration import Context
from kubeslurm.engine.controller import Requeue
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.events import Events
from kubeslurm.operator.controllers import REGISTRATIONS
from kubeslurm.reconcile.controller.reconciler import ControllerReconciler
from kubeslurm.reconcile.restapi.reconciler import RestApiReconciler
from kubeslurm.reconcile.slurmcluster.reconciler import SlurmClusterReconciler
from kubeslurm.reconcile.token.reconciler import TokenReconciler
from kubeslurm.slurm import conf
from kubeslurm.slurm.clusters import Clusters, SlurmCluster
from kubeslurm.slurm.errors import SlurmError
from kubeslurm.slurm.jobs import JobStore
from kubeslurm.slurm.rest.models import Job, JobState, Node, Nodes, Ping, RunningConf
from kubeslurm.slurm.snapshot import Snapshot
from tests.support.fake_apiserver import FakeApiServer
from tests.support.fake_storage import Address

KEY = Key("ns", "c")
JWT_KEY = b"jwt-key-" * 4
API = "slinky.slurm.net/v1beta1"
WATCHED: tuple[kinds.Kind[Any], ...] = (
    *kinds.SLURM_KINDS,
    kinds.CONFIGMAP,
    kinds.DEPLOYMENT,
    kinds.NODE,
    kinds.POD,
    kinds.SECRET,
    kinds.SERVICE,
    kinds.STATEFULSET,
)


class FakeSlurm:
    """slurmctld with the interface of the client: on reconfigure it reads what the kubelet mounted."""

    def __init__(self, plane: "ControlPlane") -> None:
        self.plane = plane
        self.reconfigured = 0
        self.read = ""
        self.nodes_now: tuple[Node, ...] = ()
        self.jobs_now: tuple[Job, ...] = ()
        self.failure: SlurmError | TimeoutError | None = None

    async def reconfigure(self) -> None:
        if self.failure is not None:
            raise self.failure
        self.reconfigured += 1
        self.read = self.plane.mounted

    async def conf(self) -> RunningConf:
        return RunningConf(values={}, checksum=conf.checksum(self.read) or 0, read_at=self.reconfigured)

    async def ping(self) -> tuple[Ping, ...]:
        return (Ping(responding=True),)

    async def nodes(self, _since: int | None = None) -> Nodes:
        return Nodes(nodes=self.nodes_now, last_update=1)

    async def jobs_state(self) -> tuple[JobState, ...]:
        if self.failure is not None:
            raise self.failure
        return tuple(JobState(job.job_id, job.job_state) for job in self.jobs_now)

    async def job(self, job_id: int) -> Job | None:
        return next((job for job in self.jobs_now if job.job_id == job_id), None)

    async def release(self) -> str:
        return "26.05.5"

    async def close(self) -> None:
        return


class ControlPlane:
    """The objects of one cluster, their reconcilers, and what is around them."""

    def __init__(self) -> None:
        self.server = FakeApiServer()
        self.connection = self.server.connection()
        self.mounted = ""
        self.tasks: list[asyncio.Task[None]] = []
        self.clusters = Clusters()
        self.slurm = FakeSlurm(self)
        self.now = 1_000_000.0

    async def start(self) -> None:
        """Start a new operator process: what was only in memory is gone."""
        await self.stop()
        self.caches = Caches(self.connection)
        for kind in WATCHED:
            self.caches.add(kind)
        kube = Kube(self.connection, self.caches, manager="kubeslurm-test")
        self.events = events = Events(self.connection)
        self.clusters = Clusters()
        clock = asyncio.get_running_loop().time
        self.context = Context(kube, self.caches, self.clusters, events)
        for registration in REGISTRATIONS:
            if registration.cached <= set(WATCHED):
                registration.add_indices(self.caches)
        self.controller = ControllerReconciler(self.context, clock)
        self.restapi = RestApiReconciler(self.context)
        self.slurm_side = SlurmClusterReconciler(self.context)
        self.token = TokenReconciler(self.context, clock=lambda: self.now)
        self.tasks = [asyncio.create_task(reflector.run()) for _, reflector in self.caches.reflectors]
        for _, store in self.caches.stores:
            await store.wait_synced()

    async def stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.tasks = []
        await self.clusters.close()

    async def connect(self) -> None:
        """Make slurmrestd answer."""
        cluster = SlurmCluster(KEY, ["http://rest"], b"key")
        cluster.client = self.slurm  # type: ignore[assignment]
        cluster.snapshot = Snapshot(self.slurm, clock=asyncio.get_running_loop().time)  # type: ignore[arg-type]
        cluster.jobs = JobStore(self.slurm, clock=asyncio.get_running_loop().time)  # type: ignore[arg-type]
        await cluster.snapshot.poll()
        self.clusters._clusters[KEY] = cluster

    async def make(self, kind: str, name: str, plural: str, **fields: Any) -> None:
        """Create or replace a Slurm object, as a user would."""
        known = self.server.objects.get(Address(plural, "ns", name), {}).get("metadata", {})
        metadata = {
            "name": name,
            "namespace": "ns",
            "generation": known.get("generation", 0) + 1,
            "finalizers": known.get("finalizers", []),
            "annotations": known.get("annotations", {}),
        }
        await self.server.put({"apiVersion": API, "kind": kind, "metadata": metadata, **fields}, plural)
        await self.settle()

    async def make_controller(self, **spec: Any) -> None:
        base = {
            "slurmKeyRef": {"name": "keys", "key": "slurm.key"},
            "jwtKeyRef": {"name": "keys", "key": "jwt.key"},
            "slurmctld": {"image": "slurmctld:1"},
        }
        status = self.server.objects.get(Address("controllers", "ns", "c"), {}).get("status", {})
        await self.make("Controller", "c", "controllers", spec=base | spec, status=status)

    async def make_nodeset(self, name: str = "gpu", **spec: Any) -> None:
        partition = {"enabled": True, "config": "MaxTime=UNLIMITED"}
        base = {"controllerRef": {"name": "c"}, "slurmd": {"image": "slurmd:1"}, "partition": partition}
        await self.make("NodeSet", name, "nodesets", spec=base | spec)

    async def make_keys(self, key: bytes = JWT_KEY) -> None:
        data = {"slurm.key": _b64(b"slurm"), "jwt.key": _b64(key)}
        await self.plain("Secret", "keys", "secrets", data=data)

    async def plain(self, kind: str, name: str, plural: str, **fields: Any) -> None:
        """Create or replace an object of the core API, such as a Secret."""
        metadata = {"name": name, "namespace": "ns"}
        await self.server.put({"apiVersion": "v1", "kind": kind, "metadata": metadata, **fields}, plural)
        await self.settle()

    async def mark_deleted(self, annotations: dict[str, str] | None = None) -> None:
        """Delete the Controller, which its finalizer holds."""
        tree = self.find("controllers", "c") or {}
        more = {"deletionTimestamp": "2026-01-01T00:00:00Z", "annotations": annotations or {}}
        await self.server.put(tree | {"metadata": tree["metadata"] | more}, "controllers")
        await self.settle()

    async def settle(self) -> None:
        await asyncio.sleep(0.1)

    async def turn(self, times: int = 1) -> Requeue | None:
        """Reconcile the Controller; between two passes wait as long as it asks for."""
        result = None
        for _ in range(times):
            for cluster in self.clusters:
                await cluster.snapshot.poll()
            result = await self.controller.reconcile(KEY)
            await asyncio.sleep(result.after if result else 0.1)
        return result

    async def end_trial(self, code: int = 0, message: str = "") -> None:
        """End the running trial."""
        (trial,) = self.trials()
        ended = {"exitCode": code, "message": message, "reason": "Error" if code else "Completed"}
        status = {"phase": "Running", "containerStatuses": [{"name": "trial", "state": {"terminated": ended}}]}
        await self.server.put(copy.deepcopy(trial) | {"status": status}, "pods")
        await self.settle()

    async def roll_out(self) -> None:
        """Let a changed configuration become the running one."""
        await self.turn()
        if self.trials():
            await self.end_trial()
            await self.turn()
            self.refresh_mount()
            await self.turn(6)

    async def run_slurmctld(self, uid: str = "pod-1") -> None:
        """Start the StatefulSet's pod with what is mounted."""
        labels = {names.LABEL_NAME: names.SLURMCTLD, names.LABEL_INSTANCE: "c"}
        container = {"name": "slurmctld", "started": True, "ready": True, "state": {"running": {}}, "containerID": uid}
        ready = {"type": "Ready", "status": "True"}
        await self.server.put(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "c-controller-0", "namespace": "ns", "labels": labels, "uid": uid},
                "status": {"phase": "Running", "conditions": [ready], "containerStatuses": [container]},
            },
            "pods",
        )
        self.refresh_mount()
        self.slurm.read = self.mounted
        await self.settle()

    def refresh_mount(self) -> None:
        """Let the kubelet write the mounted files again."""
        self.mounted = self.delivered_conf()

    def delivered_conf(self) -> str:
        found = self.find("configmaps", "c-config")
        return str(found["data"]["slurm.conf"]) if found else ""

    def trials(self) -> list[Tree]:
        return [tree for place, tree in self.server.objects.items() if place.plural == "pods" and "trial" in place.name]

    def find(self, plural: str, name: str) -> Tree | None:
        return self.server.objects.get(Address(plural, "ns", name))

    def status(self, plural: str = "controllers", name: str = "c") -> Tree:
        found = self.find(plural, name) or {}
        status: Tree = found.get("status", {})
        return status

    def condition(self, type_: str, plural: str = "controllers", name: str = "c") -> Tree:
        return next(each for each in self.status(plural, name)["conditions"] if each["type"] == type_)

    async def sent_events(self) -> dict[str, str]:
        """The events so far: the last note of each reason."""
        await self.events.flush()
        return {tree["reason"]: tree["note"] for place, tree in self.server.objects.items() if place.plural == "events"}

    @property
    def writes(self) -> int:
        return sum(1 for request in self.server.requests if request.method != "GET")


async def started(plane: ControlPlane) -> ControlPlane:
    """A cluster that runs its first configuration; no fixture, because a fixture would wait in real time."""
    await plane.turn()
    await plane.end_trial()
    await plane.turn()
    await plane.run_slurmctld()
    await plane.connect()
    await plane.turn(6)
    assert plane.status()["configHash"] == plane.status()["wantedConfigHash"] != ""
    return plane


def _b64(value: bytes) -> str:
    return base64.b64encode(value).decode()
