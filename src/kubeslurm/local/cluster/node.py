"""The first process of a node: makes the node's root and network, then looks after its programs until it ends."""

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
from kubeslurm.local.cluster.state import Home, Launch, NodeReport, log_name, save
from kubeslurm.local.host import cgroups, kernel, rootfs
from kubeslurm.local.host.supervisor import Component, spawn, supervise

STOP_GRACE = 10.0
NAMESPACES = kernel.NEWCGROUP | kernel.NEWNS | kernel.NEWNET | kernel.NEWUTS | kernel.NEWIPC


class Plan(msgspec.Struct, frozen=True):
    """Everything a node is made from."""

    spec: NodeSpec
    home: Home
    launch: Launch
    layout: cgroups.Layout
    share: programs.Share


def run(plan: Plan) -> None:
    """Life of the process."""
    # Opened now, since nothing of the host can be reached by name from inside the node.
    fabric = os.open("/proc/self/ns/net", os.O_RDONLY)
    records, logs = (Path(f"/proc/self/fd/{os.open(path, os.O_RDONLY)}") for path in (plan.home.run, plan.home.logs))
    parts = programs.node(plan.spec)
    host_pid = int(os.readlink("/proc/self"))
    _enter_groups(plan)
    _enter_root(plan)
    _connect(plan, fabric)
    signs = {"containerd": Path(programs.SOCKET), "apiserver": records / plan.home.serving.name, "": Path("/")}
    components = [
        Component(
            f"{plan.spec.name}/{name}",
            partial(spawn, part.argv, programs.ENVIRONMENT, logs / log_name(f"{plan.spec.name}/{name}")),
            may_run=signs[part.after].exists,
            once=part.once,
        )
        for name, part in parts.items()
    ]
    supervise(components, lambda seen: save(records / f"{plan.spec.name}.json", NodeReport(host_pid, seen)))
    _stop(next(each.condition.pid for each in components if each.condition.name.endswith("/kubelet")))


def _enter_groups(plan: Plan) -> None:
    group = f"{plan.home.group}/{plan.spec.name}"
    cgroups.make(plan.layout, f"{group}/system")
    cgroups.join(plan.layout, group)
    kernel.unshare(NAMESPACES)
    # On cgroup v2 only groups without processes of their own can hand controllers down to pods.
    cgroups.join(plan.layout, f"{group}/system")


def _enter_root(plan: Plan) -> None:
    kernel.mount("none", Path("/"), flags=kernel.RECURSIVE | kernel.SLAVE)
    disk = plan.home.node(plan.spec.name)
    root = rootfs.assemble(disk / "scratch", plan.launch.parts.node_root, plan.launch.parts.kubernetes)
    rootfs.control_groups(root, plan.layout)
    rootfs.kernel_tunables(root, disk / "scratch")
    for name in ("lib/containerd", "lib/kubelet", "log"):
        kept = disk / Path(name).name
        kept.mkdir(exist_ok=True)
        kernel.bind(kept, root / "var" / name)
    kernel.bind(plan.launch.parts.pause, root / programs.PAUSE_ARCHIVE.lstrip("/"))
    kernel.bind(plan.home.volumes, root / programs.VOLUMES.lstrip("/"))
    rootfs.write(root, programs.node_files(plan.spec, plan.share))
    rootfs.write(root, programs.node_credentials(plan.spec, plan.home.pki), 0o600)
    kernel.pivot_root(root)
    kernel.mount("none", Path("/"), flags=kernel.RECURSIVE | kernel.SHARED)
    socket.sethostname(plan.spec.name)
    os.environ.update(programs.ENVIRONMENT)


def _connect(plan: Plan, fabric: int) -> None:
    index, others = plan.spec.index, [node.index for node in plan.launch.spec.nodes]
    bridge = ("nsenter", f"--net=/proc/self/fd/{fabric}", "ip")
    # The link of an earlier life may still be on its way out.
    subprocess.run([*bridge, "link", "del", f"veth{index}"], pass_fds=[fabric], capture_output=True, check=False)
    for ip, lines in (
        (("ip",), network.node_commands(index, others, fabric)),
        (bridge, network.attach_commands(index)),
    ):
        subprocess.run([*ip, "-batch", "-"], input="\n".join(lines), text=True, pass_fds=[fabric], check=True)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1\n")


def _stop(kubelet: int) -> None:
    """Ask every process of a pod to end and wait a little; the rest ends with us, as on a machine switched off."""
    if kubelet:
        os.kill(kubelet, signal.SIGKILL)  # or it would start again what ends now
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
        with contextlib.suppress(OSError):  # it ended meanwhile
            if "/kubepods" in (entry / "cgroup").read_text():
                found.append(int(entry.name))
    return found
