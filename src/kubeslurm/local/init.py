"""The first process of a cluster: owns its namespaces, starts everything in them, takes it all along at its end."""

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

from kubeslurm.local import cgroups, controlplane, kernel, network, nodeconfig, processes, rootfs
from kubeslurm.local.control import Reply, Request, serve
from kubeslurm.local.nodes import Nodes
from kubeslurm.local.state import Home, InitRecord, Launch, load, replace, save, started
from kubeslurm.local.supervisor import Component, Supervisor

SYS_RESOURCE = 24


class Init:
    """Everything that runs once per cluster."""

    def __init__(self, launch: Launch, host_network: int) -> None:
        self.launch = launch
        self.home = Home(launch.spec.name)
        self.host_network = host_network
        self.layout = cgroups.detect()
        self.group = f"{self.home.group}/control"
        self.root = Path("/")
        self.supervisor = Supervisor()

    async def run(self, commit: int) -> None:
        """Start everything, then answer commands for ever."""
        asyncio.get_running_loop().add_reader(commit, _end_without_commit, commit)
        self._enter()
        self.supervisor.install()
        self._start_control_plane()
        nodes = Nodes(self.launch, self.layout, self._machine(), self.supervisor, self._ip)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(serve(self.home.run, lambda request: _answer(request, nodes, self.supervisor)))
            for name in nodes.all:
                tasks.create_task(nodes.start(name))

    def _enter(self) -> None:
        """Namespaces, root directory for the control plane, bridge."""
        cgroups.make(self.layout, self.group)
        cgroups.join(self.layout, self.group)
        kernel.unshare(kernel.NEWNS | kernel.NEWNET | kernel.NEWUTS | kernel.NEWIPC)
        # Slave: what the host unmounts later goes here too, and nothing of ours shows up there.
        kernel.propagation(Path("/"), kernel.SLAVE)
        socket.sethostname(self.launch.spec.name)
        scratch = self.home.run / "root"
        scratch.mkdir()
        self.root = rootfs.assemble(scratch, self.launch.node_root, self.launch.kubernetes)
        kernel.bind(self.home.path, self.root / "cluster")
        if self.launch.kwok:
            kernel.bind(self.launch.kwok, self.root / "kwok")
        self._ip(network.fabric_commands())
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1\n")
        for name, content in controlplane.files(self.home.pki).items():
            replace(self.home.run / name, content)

    def _start_control_plane(self) -> None:
        place = processes.Place(self.layout, self.group, root=self.root)
        for program in controlplane.programs(self.launch.spec):
            awaits = self.home.serving if program.after == "apiserver" else None
            self.supervisor.add(Component(program, place, self.home.logs / f"{program.name}.log", awaits=awaits))
        argv = (sys.executable, "-m", "kubeslurm.local.keeper", self.home.name, str(self.host_network))
        keeper = controlplane.Program("keeper", argv, dict(os.environ))
        outside = processes.Place(self.layout, self.group)
        log = self.home.logs / "keeper.log"
        self.supervisor.add(Component(keeper, outside, log, keep=(self.host_network,)))

    def _machine(self) -> nodeconfig.Machine:
        memory = int(Path("/proc/meminfo").read_text().split()[1]) // 1024
        status = Path("/proc/self/status").read_text()
        capabilities = int(status.split("CapEff:")[1].split()[0], 16)
        return nodeconfig.Machine(
            memory_mb=memory,
            share_mb=memory * 9 // 10 // max(1, len(self.launch.spec.nodes)),
            open_files=processes.raise_open_files(),
            may_lower_oom_score=bool(capabilities >> SYS_RESOURCE & 1),
        )

    def _ip(self, commands: list[str]) -> None:
        """Run `ip` of the node image; a line that fails is said in the log and does not stop the others."""
        batch = "\n".join(commands).encode()
        argv = ["/usr/sbin/ip", "-force", "-batch", "-"]
        subprocess.run(argv, input=batch, preexec_fn=lambda: os.chroot(self.root), check=False)


async def _answer(request: Request, nodes: Nodes, supervisor: Supervisor) -> Reply:
    match request.verb:
        case "start":
            await nodes.start(request.node)
        case "stop" | "kill":
            await nodes.stop(request.node, kill=request.verb == "kill")
    components = [component.condition() for component in supervisor.components.values()]
    return Reply(components, [node.condition() for node in nodes.all.values()])


def _end_without_commit(commit: int) -> None:
    """`up` says a word when all is well; when it ends before that, nothing may stay behind."""
    if os.read(commit, 1):
        asyncio.get_running_loop().remove_reader(commit)
        os.close(commit)
    else:
        os._exit(1)


def main() -> None:
    """Runs detached: `python -m kubeslurm.local.init NAME COMMIT_FD`."""
    home = Home(sys.argv[1])
    launch = load(home.run / "launch.json", Launch)
    assert launch is not None  # noqa: S101  written by `up` right before
    host_network = os.open("/proc/self/ns/net", os.O_RDONLY)
    kernel.unshare(kernel.NEWPID)
    if pid := os.fork():
        save(home.run / "init.json", InitRecord(pid, started(pid)))
        os._exit(0)
    asyncio.run(Init(launch, host_network).run(int(sys.argv[2])))


if __name__ == "__main__":
    main()
