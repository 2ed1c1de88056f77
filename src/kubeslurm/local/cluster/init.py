"""The first process of a cluster: owns its namespaces, starts everything in them, takes it all along at its end."""

import contextlib
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from kubeslurm.local.cluster import network, node, programs
from kubeslurm.local.cluster.nodespec import NodeSpec
from kubeslurm.local.cluster.state import Home, InitRecord, Launch, log_name, replace, save, started
from kubeslurm.local.host import cgroups, kernel, rootfs
from kubeslurm.local.host.supervisor import Component, bound, spawn, supervise

COMMIT = 0  # where `up` says its word


class Init:
    """Everything that runs once per cluster."""

    def __init__(self, home: Home, host_network: int) -> None:
        self.home = home
        self.launch: Launch = home.launch()
        self.host_network = host_network
        self.layout = cgroups.detect()
        self.root = home.run / "root/root"
        self.share = _share(len(self.launch.spec.nodes))
        self.committed = False
        self.routed = 0
        self.nodes = {spec.index: self._node(spec) for spec in self.launch.spec.nodes}

    def run(self) -> None:
        """Start everything and look after it for ever."""
        os.set_blocking(COMMIT, False)
        self._enter()
        components = [*self._control_plane(), *self.nodes.values()]
        supervise(components, partial(save, self.home.run / "status.json"), self._tick)

    def _enter(self) -> None:
        """Namespaces, root directory for the control plane, bridge."""
        cgroups.make(self.layout, f"{self.home.group}/control")
        cgroups.join(self.layout, f"{self.home.group}/control")
        kernel.unshare(kernel.NEWNS | kernel.NEWNET | kernel.NEWUTS | kernel.NEWIPC)
        # Slave: what the host unmounts later goes here too, and nothing of ours shows up there.
        kernel.mount("none", Path("/"), flags=kernel.RECURSIVE | kernel.SLAVE)
        socket.sethostname(self.launch.spec.name)
        rootfs.assemble(self.root.parent, self.launch.parts.node_root, self.launch.parts.kubernetes)
        kernel.bind(self.home.path, self.root / "cluster")
        if self.launch.parts.kwok:
            kernel.bind(self.launch.parts.kwok, self.root / "kwok")
        self._ip(network.fabric_commands())
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1\n")
        for name, content in programs.control_plane_files(self.home.pki).items():
            replace(self.home.run / name, content)

    def _control_plane(self) -> list[Component]:
        def component(name: str, start: Callable[[Path], int], sign: Path) -> Component:
            return Component(name, lambda: start(self.home.logs / log_name(name)), may_run=sign.exists)

        inside = {
            name: component(
                name,
                partial(spawn, ("chroot", str(self.root), *part.argv), programs.ENVIRONMENT),
                self.home.serving if part.after else self.home.run,
            )
            for name, part in programs.control_plane(self.launch.spec).items()
        }
        argv = (sys.executable, "-m", "kubeslurm.local.cluster.keeper", self.home.name, str(self.host_network))
        keeper = partial(spawn, argv, dict(os.environ), keep=(self.host_network,))
        return [*inside.values(), component("keeper", keeper, self.home.run)]

    def _node(self, spec: NodeSpec) -> Component:
        plan = node.Plan(spec, self.home, self.launch, self.layout, self.share)

        def start() -> int:
            cgroups.remove(self.layout, f"{self.home.group}/{spec.name}")
            (self.home.run / f"{spec.name}.json").unlink(missing_ok=True)
            return kernel.fork_first(lambda: node.run(plan))

        return Component(spec.name, start, may_run=lambda: not self.home.off(spec.name).exists())

    def _tick(self) -> None:
        self._end_without_commit()
        running = [index for index, each in self.nodes.items() if each.condition.state == "running"]
        if running and self.routed not in running:
            # Reach Services from the control plane through any node that is up.
            self.routed = running[0]
            self._ip([network.service_route(self.routed)])
        for log in self.home.logs.glob("*.log"):
            if not log.name.startswith("audit"):  # the apiserver looks after that one
                bound(log)

    def _end_without_commit(self) -> None:
        """`up` says a word when all is well; when it ends before that, nothing may stay behind."""
        with contextlib.suppress(BlockingIOError):
            self.committed = self.committed or os.read(COMMIT, 1) != b""
            if not self.committed:
                os._exit(1)

    def _ip(self, lines: list[str]) -> None:
        """Run `ip` of the node image; a line that fails is said in the log and does not stop the others."""
        argv = ["chroot", str(self.root), "ip", "-force", "-batch", "-"]
        subprocess.run(argv, input="\n".join(lines), text=True, check=False)


def _share(nodes: int) -> programs.Share:
    """What this machine gives to each node; open files as many as the hard limit allows, for all children."""
    memory = int(Path("/proc/meminfo").read_text().split()[1]) // 1024
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    may_lower = bool(kernel.capabilities() >> kernel.SYS_RESOURCE & 1)
    return programs.Share(memory - memory * 9 // 10 // max(1, nodes), files, may_lower)


def main() -> None:
    """Runs detached: `python -m kubeslurm.local.cluster.init NAME`, with a pipe from `up` as its input."""
    home = Home(sys.argv[1])
    host_network = os.open("/proc/self/ns/net", os.O_RDONLY)
    os.environ["PATH"] = programs.PATH
    pid = kernel.fork_first(lambda: Init(home, host_network).run())
    save(home.run / "init.json", InitRecord(pid, started(pid)))


if __name__ == "__main__":
    main()
