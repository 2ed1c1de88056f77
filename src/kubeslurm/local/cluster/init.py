"""The init of a cluster, PID 1 in its namespaces: starts the control plane and the nodes; all end when it ends."""

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
from kubeslurm.local.cluster.state import Home, InitRecord, Launch, log_name, start_time
from kubeslurm.local.host import cgroups, files, kernel, rootfs
from kubeslurm.local.host.supervisor import Component, rotate, spawn, supervise

LOCAL_CONTROLLER = "kubeslurm.local.cluster.local_controller"
COMMIT = 0  # standard input: `up` writes one byte to it once the cluster is ready


class Init:
    """Starts and supervises one cluster."""

    def __init__(self, home: Home, host_network: int) -> None:
        self.home = home
        self.launch: Launch = home.launch()
        self.host_network = host_network
        self.layout = cgroups.detect()
        self.root = home.run / "root/root"
        self.resources = _node_resources(len(self.launch.spec.nodes))
        self.committed = False
        self.service_gateway = 0  # index of the node that Service addresses are routed through
        self.nodes = {spec.index: self._node(spec) for spec in self.launch.spec.nodes}

    def run(self) -> None:
        """Start everything and supervise it, forever."""
        os.set_blocking(COMMIT, False)
        self._enter()
        components = [*self._control_plane(), *self.nodes.values()]
        supervise(components, partial(files.save, self.home.run / "status.json"), self._tick)

    def _enter(self) -> None:
        """Set up namespaces, the root of the control plane, and the bridge."""
        cgroups.make(self.layout, f"{self.home.group}/control")
        cgroups.join(self.layout, f"{self.home.group}/control")
        kernel.unshare(kernel.NEWNS | kernel.NEWNET | kernel.NEWUTS | kernel.NEWIPC)
        # Slave propagation: unmounts on the host apply here too, and our mounts do not appear on the host.
        kernel.mount("none", Path("/"), flags=kernel.RECURSIVE | kernel.SLAVE)
        socket.sethostname(self.launch.spec.name)
        rootfs.assemble(self.root.parent, self.launch.artifacts.node_root, self.launch.artifacts.kubernetes)
        kernel.bind(self.home.path, self.root / "cluster")
        if self.launch.artifacts.kwok:
            kernel.bind(self.launch.artifacts.kwok, self.root / "kwok")
        self._ip(network.bridge_commands())
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1\n")
        for name, content in programs.control_plane_files(self.home.pki).items():
            files.write(self.home.run / name, content)

    def _control_plane(self) -> list[Component]:
        def component(name: str, start: Callable[[Path], int], ready_file: Path) -> Component:
            return Component(name, lambda: start(self.home.logs / log_name(name)), may_run=ready_file.exists)

        components = [
            component(
                name,
                partial(spawn, ("chroot", str(self.root), *program.argv), programs.ENVIRONMENT),
                self.home.serving if program.after else self.home.run,
            )
            for name, program in programs.control_plane(self.launch.spec).items()
        ]
        argv = (sys.executable, "-m", LOCAL_CONTROLLER, self.home.name, str(self.host_network))
        start = partial(spawn, argv, dict(os.environ), keep=(self.host_network,))
        return [*components, component("local-controller", start, self.home.run)]

    def _node(self, spec: NodeSpec) -> Component:
        setup = node.NodeSetup(spec, self.home, self.launch, self.layout, self.resources)

        def start() -> int:
            cgroups.remove(self.layout, f"{self.home.group}/{spec.name}")
            (self.home.run / f"{spec.name}.json").unlink(missing_ok=True)
            return kernel.fork_init(lambda: node.run(setup))

        return Component(spec.name, start, may_run=lambda: not self.home.stop_file(spec.name).exists())

    def _tick(self) -> None:
        self._end_without_commit()
        running = [index for index, each in self.nodes.items() if each.status.state == "running"]
        if running and self.service_gateway not in running:
            # The control plane has no kube-proxy: it reaches Services through any running node.
            self.service_gateway = running[0]
            self._ip([network.service_route(self.service_gateway)])
        for log in self.home.logs.glob("*.log"):
            if not log.name.startswith("audit"):  # the API server rotates that one
                rotate(log)

    def _end_without_commit(self) -> None:
        """Exit if `up` has ended before the cluster was ready: standard input is then closed without a byte."""
        with contextlib.suppress(BlockingIOError):
            self.committed = self.committed or os.read(COMMIT, 1) != b""
            if not self.committed:
                os._exit(1)

    def _ip(self, lines: list[str]) -> None:
        """Run `ip` of the node image; a line that fails is logged and does not stop the others."""
        argv = ["chroot", str(self.root), "ip", "-force", "-batch", "-"]
        subprocess.run(argv, input="\n".join(lines), text=True, check=False)


def _node_resources(nodes: int) -> programs.NodeResources:
    """What each node may use; also raises the limit of open files for all children to the hard limit."""
    memory = int(Path("/proc/meminfo").read_text().split()[1]) // 1024
    _, open_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, open_files))
    may_lower = bool(kernel.capabilities() >> kernel.SYS_RESOURCE & 1)
    return programs.NodeResources(memory - memory * 9 // 10 // max(1, nodes), open_files, may_lower)


def main() -> None:
    """`python -m kubeslurm.local.cluster.init NAME`, with a pipe from `up` as standard input; runs detached."""
    home = Home(sys.argv[1])
    host_network = os.open("/proc/self/ns/net", os.O_RDONLY)
    os.environ["PATH"] = programs.PATH
    pid = kernel.fork_init(lambda: Init(home, host_network).run())
    files.save(home.run / "init.json", InitRecord(pid, start_time(pid)))


if __name__ == "__main__":
    main()
