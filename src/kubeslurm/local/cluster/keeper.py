"""Looks after what a cluster needs inside Kubernetes: DNS objects, node labels, volumes, ports on the loopback."""

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
from kubeslurm.local.cluster.api import MERGE, Api, ApiError, Mirror
from kubeslurm.local.cluster.nodespec import NodeSpec
from kubeslurm.local.cluster.programs import Tree
from kubeslurm.local.cluster.relay import Relay
from kubeslurm.local.cluster.state import Home, Reached, save

NODES, VOLUMES = "/api/v1/nodes", "/api/v1/persistentvolumes"
FIXED_PORTS = (network.API_PORT, network.REGISTRY_PORT)
PROVISIONER = "kubeslurm.dev/local"
# After a pass, so many times the CPU it took: of a thousand nodes, one changes all the time.
REST, LONGEST_REST = 20, 0.2
NOT_READY = "node.kubernetes.io/not-ready"
_FAKE = re.compile(r"fake-\d+")


class Keeper:
    """One pass per change of anything it watches."""

    def __init__(self, home: Home, host_network: int) -> None:
        self.home = home
        self.launch = home.launch()
        self.spec = self.launch.spec
        self.launched = (home.run / "launch.json").stat().st_mtime
        self.wanted = {node.name: node for node in self.spec.nodes}
        self.api = Api(home.pki, "keeper")
        self.relay = Relay(host_network, self.spec.address, self.targets)
        self.nodes = Mirror(self.api, NODES)
        self.services = Mirror(self.api, "/api/v1/services")
        self.claims = Mirror(self.api, "/api/v1/persistentvolumeclaims")
        self.volumes = Mirror(self.api, VOLUMES)
        self.reached: Reached | None = None

    async def run(self) -> None:
        await self.open_ports()
        await self.api.wait()
        missing = await self.set_up()
        self.home.serving.touch()
        passes: list[tuple[Mirror, Callable[[], Awaitable[None]]]] = [
            (self.nodes, self.keep_nodes),
            (self.services, self.open_ports),
            (self.claims, self.provide),
            (self.volumes, self.clean),
        ]
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.create_nodes(missing))
            for mirror, keep in passes:
                tasks.create_task(mirror.run())
                tasks.create_task(_on_change(mirror, keep))

    async def set_up(self) -> list[str]:
        """Apply what every cluster starts with, drop nodes that are no longer asked for; says which fake ones lack."""
        for tree in programs.trees("addons.yaml"):
            await self.api.apply(tree)
        there = {_name(item) for item in json.loads(await self.api.call("GET", NODES))["items"]}
        fake = [f"fake-{number}" for number in range(1, self.spec.fake_nodes + 1)]
        former = {name for name in there if _FAKE.fullmatch(name)}.difference(fake)
        for name in former | there.intersection(self.launch.former_nodes):
            await self.api.call("DELETE", f"{NODES}/{name}")
        return [name for name in fake if name not in there]

    async def create_nodes(self, names: list[str]) -> None:
        """Many at a time: a thousand one by one would take a while."""
        (tree,) = programs.trees("fake-node.yaml", name="NAME")
        text = json.dumps(tree)
        trees = [json.loads(text.replace("NAME", name)) for name in names]
        for start in range(0, len(trees), 25):
            await asyncio.gather(*(self.api.call("POST", NODES, tree) for tree in trees[start : start + 25]))

    async def keep_nodes(self) -> None:
        """Labels, taints and extended resources as asked for."""
        ready, fake = [], 0
        for tree in list(self.nodes.objects.values()):
            name = _name(tree)
            if spec := self.wanted.get(name):
                if patch := node_patch(spec, tree):
                    await self.api.call("PATCH", f"{NODES}/{name}", patch, MERGE)
                if patch := resource_patch(spec, tree):
                    await self.api.call("PATCH", f"{NODES}/{name}/status", patch, MERGE)
                ready += [name] if _is_ready(tree, since=self.launched) else []
            elif _FAKE.fullmatch(name):
                fake += takes_pods(tree)
        if (reached := Reached(sorted(ready), fake)) != self.reached:
            self.reached = reached
            save(self.home.run / "reached.json", reached)

    async def open_ports(self) -> None:
        """The apiserver, the registry, and every NodePort."""
        await self.relay.set_ports({*FIXED_PORTS, *node_ports(self.services.objects.values())})

    def targets(self, port: int) -> list[str]:
        """Where a port is served; any node serves a NodePort, ready ones first."""
        if port in FIXED_PORTS:
            return [network.FABRIC]
        ready = {_name(tree) for tree in self.nodes.objects.values() if _is_ready(tree, since=self.launched)}
        ordered = sorted(self.spec.nodes, key=lambda node: (node.name not in ready, node.index))
        return [network.node_address(node.index) for node in ordered]

    async def provide(self) -> None:
        """A directory and a volume for each claim that awaits one."""
        for volume in map(volume_for, filter(awaits_volume, list(self.claims.objects.values()))):
            directory = self.home.volumes / _name(volume)
            directory.mkdir(exist_ok=True)
            directory.chmod(0o777)  # any user may write: containers of any user work without an fsGroup too
            try:
                await self.api.call("POST", VOLUMES, volume)
            except ApiError as error:
                if error.status != 409:
                    raise

    async def clean(self) -> None:
        """No volume stays that was released."""
        for volume in filter(is_released, list(self.volumes.objects.values())):
            shutil.rmtree(self.home.volumes / _name(volume), ignore_errors=True)
            await self.api.call("DELETE", f"{VOLUMES}/{_name(volume)}")


def node_patch(spec: NodeSpec, node: Tree) -> Tree:
    """What is missing on a node of labels and taints, as a merge patch; empty when nothing is."""
    patch: Tree = {}
    labels = node["metadata"].get("labels", {})
    if missing := {key: value for key, value in spec.labels.items() if labels.get(key) != value}:
        patch["metadata"] = {"labels": missing}
    present = node["spec"].get("taints", [])
    seen = {(taint["key"], taint["effect"]) for taint in present}
    if absent := [taint for taint in spec.taints if (taint.key, taint.effect) not in seen]:
        patch["spec"] = {"taints": present + msgspec.to_builtins(absent)}
    return patch


def resource_patch(spec: NodeSpec, node: Tree) -> Tree:
    """Extended resources that the node does not show; the kubelet drops them when it starts anew."""
    shown = (node["status"].get(part, {}) for part in ("capacity", "allocatable"))
    if all(spec.resources.items() <= part.items() for part in shown):
        return {}
    return {"status": {"capacity": spec.resources, "allocatable": spec.resources}}


def takes_pods(node: Tree) -> bool:
    """Ready, and no longer tainted: Kubernetes takes the taint of a new node away in its own time."""
    tainted = any(taint["key"] == NOT_READY for taint in node["spec"].get("taints", []))
    conditions = node["status"].get("conditions", [])
    return not tainted and any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def node_ports(services: Iterable[Tree]) -> set[int]:
    """TCP NodePorts of these Services."""
    ports = [port for service in services for port in service["spec"].get("ports", [])]
    return {port["nodePort"] for port in ports if port.get("nodePort") and port.get("protocol", "TCP") == "TCP"}


def awaits_volume(claim: Tree) -> bool:
    """Kubernetes names the provisioner on the claim once it is that one's turn."""
    annotations = claim["metadata"].get("annotations", {})
    return (
        claim["status"].get("phase") == "Pending"
        and annotations.get("volume.kubernetes.io/storage-provisioner") == PROVISIONER
        and not claim["spec"].get("volumeName")
        and "deletionTimestamp" not in claim["metadata"]
    )


def is_released(volume: Tree) -> bool:
    """Ours, no longer claimed, and not to be kept."""
    annotations = volume["metadata"].get("annotations", {})
    return (
        annotations.get("pv.kubernetes.io/provisioned-by") == PROVISIONER
        and volume["status"].get("phase") == "Released"
        and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete"
        and "deletionTimestamp" not in volume["metadata"]
    )


def volume_for(claim: Tree) -> Tree:
    """The volume that a claim asks for."""
    metadata, spec = claim["metadata"], claim["spec"]
    name = f"pvc-{metadata['uid']}"
    (volume,) = programs.trees(
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
    """Ready by a word of this run: what the last run said is still there when the next one starts."""
    ready = [c for c in node["status"].get("conditions", []) if c["type"] == "Ready" and c["status"] == "True"]
    return any(dt.datetime.fromisoformat(c["lastHeartbeatTime"]).timestamp() >= int(since) for c in ready)


async def _on_change(mirror: Mirror, keep: Callable[[], Awaitable[None]]) -> None:
    """Level-triggered: changes that come while a pass runs, or in the rest after it, make one more pass."""
    while True:
        await mirror.changed.wait()
        mirror.changed.clear()
        start = time.thread_time()
        try:
            await keep()
            await asyncio.sleep(min(REST * (time.thread_time() - start), LONGEST_REST))
        except ApiError as error:
            print(f"{keep.__qualname__}: {error}", file=sys.stderr, flush=True)  # noqa: T201  its log
            mirror.changed.set()
            await asyncio.sleep(1)


if __name__ == "__main__":  # python -m kubeslurm.local.cluster.keeper NAME HOST_NETWORK_FD
    asyncio.run(Keeper(Home(sys.argv[1]), int(sys.argv[2])).run())
