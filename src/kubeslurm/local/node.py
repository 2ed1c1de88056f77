"""The first process of a node: makes the node's root and network, then reaps orphans until the node ends."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from kubeslurm.local import cgroups, kernel, network, nodeconfig, rootfs
from kubeslurm.local.nodespec import NodeSpec

STOP_GRACE = 5.0
NAMESPACES = kernel.NEWCGROUP | kernel.NEWNS | kernel.NEWNET | kernel.NEWUTS | kernel.NEWIPC
_AWAITED = {signal.SIGCHLD, signal.SIGTERM}


class Plan(msgspec.Struct, frozen=True):
    """Everything a node is made from."""

    node: NodeSpec
    others: tuple[int, ...]  # indices of all nodes
    group: str  # its cgroup
    layout: cgroups.Layout
    disk: Path
    volumes: Path
    image: Path
    kubernetes: Path
    pause: Path
    settings: Mapping[str, str]
    credentials: Mapping[str, bytes]


def run(plan: Plan, report: int, attached: int) -> None:
    """Life of the process. Tells `report` its host process number, waits on `attached` for the network link."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    cgroups.make(plan.layout, f"{plan.group}/system")
    cgroups.join(plan.layout, plan.group)
    kernel.unshare(NAMESPACES)
    # On cgroup v2 only groups without processes of their own can hand controllers down to pods.
    cgroups.join(plan.layout, f"{plan.group}/system")
    os.write(report, os.readlink("/proc/self").encode() + b"\n")
    _enter_root(plan)
    if not os.read(attached, 1):
        return
    _ip(network.node_commands(plan.node.index, plan.others))
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1\n")
    os.write(report, b"ready\n")
    os.close(report)
    _live()


def _enter_root(plan: Plan) -> None:
    kernel.propagation(Path("/"), kernel.SLAVE)
    scratch = plan.disk / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    root = rootfs.assemble(scratch, plan.image, plan.kubernetes)
    rootfs.control_groups(root, plan.layout)
    rootfs.kernel_tunables(root, scratch)
    for name in ("lib/containerd", "lib/kubelet", "log"):
        kept = plan.disk / Path(name).name
        kept.mkdir(exist_ok=True)
        kernel.bind(kept, root / "var" / name)
    kernel.bind(plan.pause, root / nodeconfig.PAUSE_ARCHIVE.lstrip("/"))
    kernel.bind(plan.volumes, root / nodeconfig.VOLUMES.lstrip("/"))
    rootfs.write(root, plan.settings)
    rootfs.write(root, plan.credentials, 0o600)
    kernel.pivot_root(root)
    kernel.propagation(Path("/"), kernel.SHARED)
    socket.sethostname(plan.node.name)


def _ip(commands: list[str]) -> None:
    subprocess.run(["/usr/sbin/ip", "-batch", "-"], input="\n".join(commands).encode(), check=True)


def _live() -> None:
    """Reap whatever the node's processes leave behind, until asked to stop."""
    while signal.sigwait(_AWAITED) != signal.SIGTERM:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
    _stop()


def _stop() -> None:
    """Ask every process of a pod to end and wait a little; the rest ends with us, as on a machine switched off."""
    deadline = time.monotonic() + STOP_GRACE
    for pid in _pod_processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
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
