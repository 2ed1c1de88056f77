"""The init of a node, PID 1 in its namespaces: sets up its root and network, then supervises its programs."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from functools import partial
from pathlib import Path

import msgspec

from kubeslurm.local.cluster import network, programs
from kubeslurm.local.cluster.nodespec import NodeSpec
from kubeslurm.local.cluster.state import Home, Launch, NodeReport, log_name
from kubeslurm.local.host import cgroups, kernel, rootfs
from kubeslurm.local.host.files import save
from kubeslurm.local.host.supervisor import Component, spawn, supervise

STOP_GRACE = 10.0
NAMESPACES = kernel.NEWCGROUP | kernel.NEWNS | kernel.NEWNET | kernel.NEWUTS | kernel.NEWIPC


class NodeSetup(msgspec.Struct, frozen=True):
    """What a node is started with."""

    spec: NodeSpec
    home: Home
    launch: Launch
    layout: cgroups.Layout
    resources: programs.NodeResources


def run(setup: NodeSetup) -> None:
    """Run the node until SIGTERM."""
    # Opened and read now, because the files of the host cannot be reached from the root of the node.
    netns = os.open("/proc/self/ns/net", os.O_RDONLY)
    records, logs = (Path(f"/proc/self/fd/{os.open(path, os.O_RDONLY)}") for path in (setup.home.run, setup.home.logs))
    node_programs = programs.node(setup.spec)
    host_pid = int(os.readlink("/proc/self"))
    _enter_groups(setup)
    _enter_root(setup)
    _connect(setup, netns)
    ready_files = {"containerd": Path(programs.SOCKET), "apiserver": records / setup.home.serving.name, "": Path("/")}
    components = [
        Component(
            f"{setup.spec.name}/{name}",
            partial(spawn, program.argv, programs.ENVIRONMENT, logs / log_name(f"{setup.spec.name}/{name}")),
            may_run=ready_files[program.after].exists,
            once=program.once,
        )
        for name, program in node_programs.items()
    ]
    supervise(components, lambda reported: save(records / f"{setup.spec.name}.json", NodeReport(host_pid, reported)))
    _stop(next(each.status.pid for each in components if each.status.name.endswith("/kubelet")))


def _enter_groups(setup: NodeSetup) -> None:
    group = f"{setup.home.group}/{setup.spec.name}"
    cgroups.make(setup.layout, f"{group}/system")
    cgroups.join(setup.layout, group)
    kernel.unshare(NAMESPACES)
    # On cgroup v2, only a group without processes can enable controllers for the groups of pods.
    cgroups.join(setup.layout, f"{group}/system")


def _enter_root(setup: NodeSetup) -> None:
    kernel.mount("none", Path("/"), flags=kernel.RECURSIVE | kernel.SLAVE)
    disk = setup.home.node(setup.spec.name)
    root = rootfs.assemble(disk / "scratch", setup.launch.artifacts.node_root, setup.launch.artifacts.kubernetes)
    rootfs.control_groups(root, setup.layout)
    rootfs.kernel_tunables(root, disk / "scratch")
    for name in ("lib/containerd", "lib/kubelet", "log"):
        kept = disk / Path(name).name
        kept.mkdir(exist_ok=True)
        kernel.bind(kept, root / "var" / name)
    kernel.bind(setup.launch.artifacts.pause, root / programs.PAUSE_ARCHIVE.lstrip("/"))
    kernel.bind(setup.home.volumes, root / programs.VOLUMES.lstrip("/"))
    rootfs.write(root, programs.node_files(setup.spec, setup.resources))
    rootfs.write(root, programs.node_credentials(setup.spec, setup.home.pki), 0o600)
    kernel.pivot_root(root)
    kernel.mount("none", Path("/"), flags=kernel.RECURSIVE | kernel.SHARED)
    socket.sethostname(setup.spec.name)
    os.environ.update(programs.ENVIRONMENT)


def _connect(setup: NodeSetup, netns: int) -> None:
    index, others = setup.spec.index, [node.index for node in setup.launch.spec.nodes]
    bridge = ("nsenter", f"--net=/proc/self/fd/{netns}", "ip")
    # The link of the previous run may not be deleted yet.
    subprocess.run([*bridge, "link", "del", f"veth{index}"], pass_fds=[netns], capture_output=True, check=False)
    for ip, lines in (
        (("ip",), network.node_commands(index, others, netns)),
        (bridge, network.attach_commands(index)),
    ):
        subprocess.run([*ip, "-batch", "-"], input="\n".join(lines), text=True, pass_fds=[netns], check=True)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1\n")


def _stop(kubelet: int) -> None:
    """Send SIGTERM to all processes of pods and wait a little; what still runs is killed when this process ends."""
    if kubelet:
        os.kill(kubelet, signal.SIGKILL)  # or it would restart the containers
    for pid in _pod_processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_GRACE
    while time.monotonic() < deadline and _pod_processes():
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        time.sleep(0.05)


def _pod_processes() -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # the process has exited
            if "/kubepods" in (entry / "cgroup").read_text():
                found.append(int(entry.name))
    return found
