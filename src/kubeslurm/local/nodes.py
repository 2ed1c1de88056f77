"""The nodes of a running cluster, seen from its init: start them, watch over them, stop or kill them."""

import asyncio
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

from kubeslurm.local import cgroups, network, node, nodeconfig, processes
from kubeslurm.local.control import NodeCondition
from kubeslurm.local.nodespec import NodeSpec
from kubeslurm.local.state import Home, Launch
from kubeslurm.local.supervisor import FIRST_PAUSE, LONGEST_PAUSE, STEADY_AFTER, Component, Supervisor


class Node:
    """One node and the processes it is made of."""

    def __init__(self, spec: NodeSpec) -> None:
        self.spec = spec
        self.state = "stopped"
        self.wanted = False
        self.pid = 0
        self.host_pid = 0
        self.restarts = 0
        self.since = time.time()
        self.pause = FIRST_PAUSE
        self.place: processes.Place | None = None
        self.ended = asyncio.Event()

    def become(self, state: str) -> None:
        self.state = state
        self.since = time.time()

    def condition(self) -> NodeCondition:
        return NodeCondition(self.spec.name, self.state, self.host_pid, self.restarts, self.since)


class Nodes:
    """All nodes of the cluster."""

    def __init__(
        self,
        launch: Launch,
        layout: cgroups.Layout,
        machine: nodeconfig.Machine,
        supervisor: Supervisor,
        run_ip: Callable[[list[str]], None],
    ) -> None:
        self.launch = launch
        self.home = Home(launch.spec.name)
        self.layout = layout
        self.machine = machine
        self.supervisor = supervisor
        self.run_ip = run_ip
        self.all = {spec.name: Node(spec) for spec in launch.spec.nodes}
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, name: str) -> None:
        """Bring a node up; returns when its programs are being started."""
        target = self.all[name]
        if target.wanted:
            return
        target.wanted = True
        await self._boot(target)

    async def stop(self, name: str, *, kill: bool = False) -> None:
        """Shut a node down in order, or take its power away; it stays down until it is started."""
        target = self.all[name]
        target.wanted = False
        if not target.pid:
            return
        target.become("stopping")
        for program in nodeconfig.programs(target.spec):
            self.supervisor.retire(program.name)
        self.supervisor.kill(f"{name}/kubelet")  # or it would start again what ends now
        os.kill(target.pid, signal.SIGKILL if kill else signal.SIGTERM)
        await target.ended.wait()

    async def _boot(self, target: Node) -> None:
        target.become("starting")
        target.ended.clear()
        group = f"{self.home.group}/{target.spec.name}"
        cgroups.remove(self.layout, group)
        report_read, report = os.pipe()
        attached, attached_write = os.pipe()
        plan = self._plan(target.spec, group)
        target.pid = processes.fork(lambda: node.run(plan, report, attached), new_pid_namespace=True)
        self.supervisor.watch(target.pid, lambda _: self._ended(target))
        os.close(report)
        os.close(attached)
        lines = await _lines(report_read)
        try:
            if host_pid := await lines.readline():
                self._attach(target)
                os.write(attached_write, b"+")
            if await lines.readline():
                self._populate(target, int(host_pid), group)
        finally:
            os.close(attached_write)

    def _plan(self, spec: NodeSpec, group: str) -> node.Plan:
        return node.Plan(
            node=spec,
            others=tuple(other.spec.index for other in self.all.values()),
            group=group,
            layout=self.layout,
            disk=self.home.node(spec.name),
            volumes=self.home.volumes,
            image=self.launch.node_root,
            kubernetes=self.launch.kubernetes,
            pause=self.launch.pause,
            settings=nodeconfig.files(spec, self.machine),
            credentials=nodeconfig.credentials(spec, self.home.pki),
        )

    def _attach(self, target: Node) -> None:
        """Plug the node in; the link of an earlier life may still be on its way out."""
        index = target.spec.index
        if any(name == f"veth{index}" for _, name in socket.if_nameindex()):
            self.run_ip([f"link del veth{index}"])
        self.run_ip(network.attach_commands(index, target.pid))
        if not any(other.state == "running" for other in self.all.values()):
            self.run_ip([network.service_route_command(index)])

    def _populate(self, target: Node, host_pid: int, group: str) -> None:
        target.host_pid = host_pid
        target.place = processes.Place(self.layout, f"{group}/system", node=host_pid)
        target.become("running")
        signs = {"containerd": Path(f"/proc/{host_pid}/root{nodeconfig.SOCKET}"), "apiserver": self.home.serving}
        for program in nodeconfig.programs(target.spec):
            log = self.home.logs / f"{program.name.replace('/', '.')}.log"
            self.supervisor.add(Component(program, target.place, log, awaits=signs.get(program.after)))

    def _ended(self, target: Node) -> None:
        """Everything in the node is gone now. Come back unless somebody wanted it so."""
        for program in nodeconfig.programs(target.spec):
            if program.name in self.supervisor.components:
                self.supervisor.retire(program.name)
        if target.place:
            target.place.close()
            target.place = None
        steady = time.time() - target.since > STEADY_AFTER
        target.pid = target.host_pid = 0
        target.become("restarting" if target.wanted else "stopped")
        target.ended.set()
        self._route_services()
        if target.wanted:
            target.restarts += 1
            target.pause = FIRST_PAUSE if steady else min(target.pause * 2, LONGEST_PAUSE)
            task = asyncio.get_running_loop().create_task(self._come_back(target))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _come_back(self, target: Node) -> None:
        await asyncio.sleep(target.pause)
        if target.wanted:
            await self._boot(target)

    def _route_services(self) -> None:
        """Reach Services from the control plane through any node that is up."""
        if running := next((other for other in self.all.values() if other.state == "running"), None):
            self.run_ip([network.service_route_command(running.spec.index)])


async def _lines(fd: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(fd, "rb", buffering=0)
    )
    return reader
