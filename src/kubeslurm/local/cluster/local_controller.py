"""What a cloud-controller-manager is in a cloud: sets node labels, provisions volumes, makes ports reachable."""

import asyncio
import datetime as dt
import json
import re
import shutil
import sys
import time
from collections.abc import Awaitable, Callable, Iterable

import msgspec

from kubeslurm.local.cluster import network, programs
from kubeslurm.local.cluster.client import MERGE, ApiClient, ApiError, Informer
from kubeslurm.local.cluster.nodespec import NodeSpec
from kubeslurm.local.cluster.programs import Tree
from kubeslurm.local.cluster.relay import Relay
from kubeslurm.local.cluster.state import Home, Readiness
from kubeslurm.local.host.files import save

NODES, VOLUMES = "/api/v1/nodes", "/api/v1/persistentvolumes"
FIXED_PORTS = (network.API_PORT, network.REGISTRY_PORT)
PROVISIONER = "kubeslurm.dev/local"
# The pause after a pass is a multiple of its CPU time: with a thousand nodes, some node changes all the time.
PAUSE_FACTOR, MAX_PAUSE = 20, 0.2  # MAX_PAUSE in seconds
NOT_READY = "node.kubernetes.io/not-ready"
_FAKE = re.compile(r"fake-\d+")


class LocalController:
    """Runs one pass per change of the nodes, Services, claims and volumes that it watches."""

    def __init__(self, home: Home, host_network: int) -> None:
        self.home = home
        self.launch = home.launch()
        self.spec = self.launch.spec
        self.launched = (home.run / "launch.json").stat().st_mtime
        self.node_specs = {node.name: node for node in self.spec.nodes}
        self.api = ApiClient(home.pki, "local-controller")
        self.relay = Relay(host_network, self.spec.address, self.targets)
        self.nodes = Informer(self.api, NODES)
        self.services = Informer(self.api, "/api/v1/services")
        self.claims = Informer(self.api, "/api/v1/persistentvolumeclaims")
        self.volumes = Informer(self.api, VOLUMES)
        self.readiness: Readiness | None = None

    async def run(self) -> None:
        await self.open_ports()
        await self.api.wait_ready()
        missing = await self.initialize()
        self.home.serving.touch()
        passes: list[tuple[Informer, Callable[[], Awaitable[None]]]] = [
            (self.nodes, self.update_nodes),
            (self.services, self.open_ports),
            (self.claims, self.provision_volumes),
            (self.volumes, self.delete_released_volumes),
        ]
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.create_fake_nodes(missing))
            for informer, reconcile in passes:
                tasks.create_task(informer.run())
                tasks.create_task(_on_change(informer, reconcile))

    async def initialize(self) -> list[str]:
        """Apply the initial objects and delete nodes that are no longer asked for; returns fake nodes to create."""
        for tree in programs.objects("addons.yaml"):
            await self.api.apply(tree)
        existing = {_name(item) for item in json.loads(await self.api.request("GET", NODES))["items"]}
        fake = [f"fake-{number}" for number in range(1, self.spec.fake_nodes + 1)]
        surplus = {name for name in existing if _FAKE.fullmatch(name)}.difference(fake)
        for name in surplus | existing.intersection(self.launch.former_nodes):
            await self.api.request("DELETE", f"{NODES}/{name}")
        return [name for name in fake if name not in existing]

    async def create_fake_nodes(self, names: list[str]) -> None:
        """Create the Node objects of fake nodes, 25 at a time."""
        (tree,) = programs.objects("fake-node.yaml", name="NAME")
        text = json.dumps(tree)
        trees = [json.loads(text.replace("NAME", name)) for name in names]
        for start in range(0, len(trees), 25):
            await asyncio.gather(*(self.api.request("POST", NODES, tree) for tree in trees[start : start + 25]))

    async def update_nodes(self) -> None:
        """Set labels, taints and extended resources of nodes as specified, and report which nodes are ready."""
        ready, fake = [], 0
        for tree in list(self.nodes.objects.values()):
            name = _name(tree)
            if spec := self.node_specs.get(name):
                if patch := node_patch(spec, tree):
                    await self.api.request("PATCH", f"{NODES}/{name}", patch, MERGE)
                if patch := resource_patch(spec, tree):
                    await self.api.request("PATCH", f"{NODES}/{name}/status", patch, MERGE)
                ready += [name] if _is_ready(tree, since=self.launched) else []
            elif _FAKE.fullmatch(name):
                fake += is_schedulable(tree)
        if (readiness := Readiness(sorted(ready), fake)) != self.readiness:
            self.readiness = readiness
            save(self.home.readiness_file, readiness)

    async def open_ports(self) -> None:
        """Listen on the ports of the API server, the registry and every NodePort."""
        await self.relay.set_ports({*FIXED_PORTS, *node_ports(self.services.objects.values())})

    def targets(self, port: int) -> list[str]:
        """Addresses that serve a port. Every node serves a NodePort; ready nodes come first."""
        if port in FIXED_PORTS:
            return [network.BRIDGE_IP]
        ready = {_name(tree) for tree in self.nodes.objects.values() if _is_ready(tree, since=self.launched)}
        ordered = sorted(self.spec.nodes, key=lambda node: (node.name not in ready, node.index))
        return [network.node_address(node.index) for node in ordered]

    async def provision_volumes(self) -> None:
        """Create a directory and a PersistentVolume for each claim that needs one."""
        for volume in map(volume_for, filter(needs_volume, list(self.claims.objects.values()))):
            directory = self.home.volumes / _name(volume)
            directory.mkdir(exist_ok=True)
            directory.chmod(0o777)  # containers of any user can write to it, also without an fsGroup
            try:
                await self.api.request("POST", VOLUMES, volume)
            except ApiError as error:
                if error.status != 409:
                    raise

    async def delete_released_volumes(self) -> None:
        """Delete volumes whose claim is gone, with their directories."""
        for volume in filter(is_released, list(self.volumes.objects.values())):
            shutil.rmtree(self.home.volumes / _name(volume), ignore_errors=True)
            await self.api.request("DELETE", f"{VOLUMES}/{_name(volume)}")


def node_patch(spec: NodeSpec, node: Tree) -> Tree:
    """A merge patch that adds missing labels and taints to a node; empty if none are missing."""
    patch: Tree = {}
    labels = node["metadata"].get("labels", {})
    if missing := {key: value for key, value in spec.labels.items() if labels.get(key) != value}:
        patch["metadata"] = {"labels": missing}
    present = node["spec"].get("taints", [])
    existing = {(taint["key"], taint["effect"]) for taint in present}
    if absent := [taint for taint in spec.taints if (taint.key, taint.effect) not in existing]:
        patch["spec"] = {"taints": present + msgspec.to_builtins(absent)}
    return patch


def resource_patch(spec: NodeSpec, node: Tree) -> Tree:
    """A patch that adds missing extended resources to a node; the kubelet removes them when it restarts."""
    reported = (node["status"].get(part, {}) for part in ("capacity", "allocatable"))
    if all(spec.resources.items() <= part.items() for part in reported):
        return {}
    return {"status": {"capacity": spec.resources, "allocatable": spec.resources}}


def is_schedulable(node: Tree) -> bool:
    """Whether a node is Ready and no longer has the not-ready taint, which Kubernetes removes some time later."""
    tainted = any(taint["key"] == NOT_READY for taint in node["spec"].get("taints", []))
    conditions = node["status"].get("conditions", [])
    return not tainted and any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def node_ports(services: Iterable[Tree]) -> set[int]:
    """TCP NodePorts of Services."""
    ports = [port for service in services for port in service["spec"].get("ports", [])]
    return {port["nodePort"] for port in ports if port.get("nodePort") and port.get("protocol", "TCP") == "TCP"}


def needs_volume(claim: Tree) -> bool:
    """Whether a claim waits for a volume from our provisioner, which Kubernetes names in an annotation."""
    annotations = claim["metadata"].get("annotations", {})
    return (
        claim["status"].get("phase") == "Pending"
        and annotations.get("volume.kubernetes.io/storage-provisioner") == PROVISIONER
        and not claim["spec"].get("volumeName")
        and "deletionTimestamp" not in claim["metadata"]
    )


def is_released(volume: Tree) -> bool:
    """Whether a volume is ours, its claim is gone, and it has the reclaim policy Delete."""
    annotations = volume["metadata"].get("annotations", {})
    return (
        annotations.get("pv.kubernetes.io/provisioned-by") == PROVISIONER
        and volume["status"].get("phase") == "Released"
        and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete"
        and "deletionTimestamp" not in volume["metadata"]
    )


def volume_for(claim: Tree) -> Tree:
    """The PersistentVolume for a claim."""
    metadata, spec = claim["metadata"], claim["spec"]
    name = f"pvc-{metadata['uid']}"
    (volume,) = programs.objects(
        "volume.yaml",
        name=name,
        directory=f"{programs.VOLUMES}/{name}",
        storage=spec["resources"]["requests"]["storage"],
        modes=json.dumps(spec["accessModes"]),
        storage_class=spec["storageClassName"],
        namespace=metadata["namespace"],
        claim=metadata["name"],
        uid=metadata["uid"],
    )
    return volume


def _name(tree: Tree) -> str:
    return str(tree["metadata"]["name"])


def _is_ready(node: Tree, since: float) -> bool:
    """Whether a node reported Ready in this run: the conditions of the last run are still in etcd at the next start."""
    ready = [c for c in node["status"].get("conditions", []) if c["type"] == "Ready" and c["status"] == "True"]
    return any(dt.datetime.fromisoformat(c["lastHeartbeatTime"]).timestamp() >= int(since) for c in ready)


async def _on_change(informer: Informer, reconcile: Callable[[], Awaitable[None]]) -> None:
    """Reconcile after changes, level-triggered: changes during a pass and the pause after it cause one more pass."""
    while True:
        await informer.changed.wait()
        informer.changed.clear()
        start = time.thread_time()
        try:
            await reconcile()
            await asyncio.sleep(min(PAUSE_FACTOR * (time.thread_time() - start), MAX_PAUSE))
        except ApiError as error:
            print(f"{reconcile.__qualname__}: {error}", file=sys.stderr, flush=True)  # noqa: T201  its log
            informer.changed.set()
            await asyncio.sleep(1)


if __name__ == "__main__":  # python -m kubeslurm.local.cluster.local_controller NAME HOST_NETWORK_FD
    asyncio.run(LocalController(Home(sys.argv[1]), int(sys.argv[2])).run())
