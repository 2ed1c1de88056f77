"""Looks after what a cluster needs inside Kubernetes: DNS objects, node labels, volumes, ports on the loopback."""

import asyncio
import datetime as dt
import json
import sys
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from kubeslurm.local import addons, network
from kubeslurm.local.api import MERGE, Api, ApiError, Mirror, Tree
from kubeslurm.local.relay import Relay, Target
from kubeslurm.local.state import Home, Launch, Reached, load, save
from kubeslurm.local.volumes import Volumes

NODES = "/api/v1/nodes"


class Keeper:
    """One pass per change of anything it watches."""

    def __init__(self, home: Home, launch: Launch, host_network: int) -> None:
        self.home = home
        self.launch = launch
        self.spec = spec = launch.spec
        self.launched = (home.run / "launch.json").stat().st_mtime
        self.wanted = {node.name: node for node in spec.nodes}
        self.api = Api(home.pki, "keeper")
        self.relay = Relay(host_network, spec.address)
        self.nodes = Mirror(self.api, NODES)
        self.services = Mirror(self.api, "/api/v1/services")
        self.volumes = Volumes(self.api, home.volumes)

    async def run(self) -> None:
        await self.open_ports()
        await self.api.wait()
        missing = await self.set_up()
        self.home.serving.touch()
        passes: list[tuple[Mirror, Callable[[], Awaitable[None]]]] = [
            (self.nodes, self.keep_nodes),
            (self.services, self.open_ports),
            (self.volumes.claims, self.volumes.provide),
            (self.volumes.volumes, self.volumes.clean),
        ]
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.create_nodes(missing))
            for mirror, keep in passes:
                tasks.create_task(mirror.run())
                tasks.create_task(_on_change(mirror, keep))

    async def set_up(self) -> list[Tree]:
        """Apply what every cluster starts with, drop nodes that are no longer asked for; says which fake ones lack."""
        for path, tree in addons.objects().items():
            await self.api.apply(path, tree)
        there = [item["metadata"]["name"] for item in json.loads(await self.api.call("GET", NODES))["items"]]
        fake = {addons.fake_name(number): number for number in range(1, self.spec.fake_nodes + 1)}
        former = {name for name in there if addons.is_fake_name(name) and name not in fake}
        for name in former | (set(self.launch.former_nodes) & set(there)):
            await self.api.call("DELETE", f"{NODES}/{name}")
        return [addons.fake_node(number) for name, number in fake.items() if name not in there]

    async def create_nodes(self, trees: list[Tree]) -> None:
        """Many at a time: a thousand one by one would take a while."""
        for start in range(0, len(trees), 25):
            await asyncio.gather(*(self.api.call("POST", NODES, tree) for tree in trees[start : start + 25]))

    async def keep_nodes(self) -> None:
        """Labels, taints and extended resources as asked for."""
        ready, fake = [], 0
        for tree in list(self.nodes.objects.values()):
            name = tree["metadata"]["name"]
            if name in self.wanted:
                await self._keep_node(name, tree)
                ready += [name] if _is_ready(tree, since=self.launched) else []
            elif addons.is_fake_name(name):
                fake += _is_ready(tree, since=0)
        save(self.home.run / "reached.json", Reached(True, sorted(ready), fake))

    async def _keep_node(self, name: str, tree: Tree) -> None:
        if patch := addons.node_patch(self.wanted[name], tree):
            await self.api.call("PATCH", f"{NODES}/{name}", patch, MERGE)
        if patch := addons.resource_patch(self.wanted[name], tree):
            await self.api.call("PATCH", f"{NODES}/{name}/status", patch, MERGE)

    async def open_ports(self) -> None:
        """The apiserver, the registry, and every NodePort."""
        fixed = {port: partial(_fabric, port) for port in (network.API_PORT, network.REGISTRY_PORT)}
        ports = {port: partial(self._node_targets, port) for port in node_ports(self.services.objects.values())}
        await self.relay.set_ports({**ports, **fixed})

    def _node_targets(self, port: int) -> Iterable[Target]:
        """Any node serves a NodePort; ready ones first."""
        ready = {
            tree["metadata"]["name"] for tree in self.nodes.objects.values() if _is_ready(tree, since=self.launched)
        }
        ordered = sorted(self.spec.nodes, key=lambda node: (node.name not in ready, node.index))
        return [(network.node_address(node.index), port) for node in ordered]


def node_ports(services: Iterable[Tree]) -> set[int]:
    """TCP NodePorts of these Services."""
    ports = [port for service in services for port in service["spec"].get("ports", [])]
    return {port["nodePort"] for port in ports if port.get("nodePort") and port.get("protocol", "TCP") == "TCP"}


def _fabric(port: int) -> Iterable[Target]:
    return [(network.FABRIC, port)]


def _is_ready(node: Tree, since: float) -> bool:
    """Ready by a word of this run: what the last run said is still there when the next one starts."""
    ready = [c for c in node["status"].get("conditions", []) if c["type"] == "Ready" and c["status"] == "True"]
    return any(dt.datetime.fromisoformat(c["lastHeartbeatTime"]).timestamp() >= int(since) for c in ready)


async def _on_change(mirror: Mirror, keep: Callable[[], Awaitable[None]]) -> None:
    """Level-triggered: changes that come while a pass runs make one more pass."""
    while True:
        await mirror.changed.wait()
        mirror.changed.clear()
        try:
            await keep()
        except ApiError as error:
            print(f"{keep.__qualname__}: {error}", file=sys.stderr, flush=True)  # noqa: T201  its log
            mirror.changed.set()
            await asyncio.sleep(1)


def main() -> None:
    """`python -m kubeslurm.local.keeper NAME HOST_NETWORK_FD`."""
    home = Home(sys.argv[1])
    launch = load(home.run / "launch.json", Launch)
    assert launch is not None  # noqa: S101  written before the cluster starts
    asyncio.run(Keeper(home, launch, int(sys.argv[2])).run())


if __name__ == "__main__":
    main()
