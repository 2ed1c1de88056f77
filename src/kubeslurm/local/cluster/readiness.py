"""When a cluster can start, and when it is up: every node Ready, and every node gets an answer from cluster DNS."""

import ctypes
import os
import shutil
import socket
import time
from itertools import takewhile
from pathlib import Path

from kubeslurm.local.cluster import network
from kubeslurm.local.cluster.state import ClusterSpec, Home, log_name
from kubeslurm.local.errors import LocalError
from kubeslurm.local.host import kernel
from kubeslurm.local.host.progress import Step

API_NAME = f"kubernetes.default.svc.{network.DOMAIN}"
TOO_MANY_RESTARTS = 8
# Counted: the apiserver watches 6 files, the controller manager 2; a kubelet takes 6, containerd 2.
WATCHES = 8
NEEDED_SPACE = 128 * 2**20  # etcd alone takes 64 MB at once


def check_ports(address: str) -> None:
    """The address is the cluster's own, but somebody may listen on a port of all addresses."""
    for port in (network.API_PORT, network.REGISTRY_PORT):
        try:
            socket.create_server((address, port)).close()
        except OSError as error:
            raise LocalError(
                f"Port {port} of {address} cannot be used: {error.strerror}.",
                "Stop the program that listens on this port of all addresses.",
            ) from error


def check_watches(nodes: int) -> None:
    """inotify instances are few and shared by all processes of a user: take as many as needed, and give them back."""
    libc = ctypes.CDLL(None, use_errno=True)
    needed = WATCHES + WATCHES * nodes
    tries = (libc.inotify_init1(os.O_CLOEXEC) for _ in range(needed))
    taken = list(takewhile(lambda fd: fd >= 0, tries))
    for fd in taken:
        os.close(fd)
    if len(taken) < needed:
        limit = Path("/proc/sys/fs/inotify/max_user_instances").read_text().strip()
        raise LocalError(
            f"The cluster needs {needed} inotify instances; of this user's {limit} only {len(taken)} are free.",
            "Stop another cluster, ask for fewer nodes, or raise the sysctl fs.inotify.max_user_instances.",
        )


def wait_until_ready(home: Home, spec: ClusterSpec, step: Step, deadline: float) -> None:
    """Return when the cluster is up; raise when it cannot come up."""
    wanted = {node.name for node in spec.nodes}
    while True:
        reached = home.reached()
        missing = wanted.difference(reached.nodes_ready)
        ready = len(wanted) - len(missing) + reached.fake_nodes_ready
        step.update(done=ready, total=len(wanted) + spec.fake_nodes, note="nodes ready")
        if home.serving.exists() and not missing and reached.fake_nodes_ready >= spec.fake_nodes:
            break
        _check(home, spec, deadline)
        time.sleep(0.05)
    step.update(note="waiting for cluster DNS")
    while not all(dns_answers(node.pid) for node in home.status(spec).nodes):
        _check(home, spec, deadline)


def dns_answers(pid: int) -> bool:
    """Whether a process in this node would learn the address of a Service."""
    name = b"".join(bytes([len(part)]) + part.encode() for part in API_NAME.split("."))
    try:
        with (
            Path(f"/proc/{pid}/ns/net").open() as netns,
            kernel.socket_in(netns.fileno(), lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as query,
        ):
            query.settimeout(0.25)
            # A header that announces one question, the name, and what is asked: type A, class IN.
            query.sendto(b"\0\0\1\0\0\1\0\0\0\0\0\0" + name + b"\0\0\1\0\1", (network.DNS_SERVICE, 53))
            answers = query.recv(512)[6:8]
    except OSError:
        time.sleep(0.02)
        return False
    return answers > b"\0\0"


def _check(home: Home, spec: ClusterSpec, deadline: float) -> None:
    """Give up when the cluster is gone, a part ends again and again, or time is up."""
    if home.init() is None:
        raise LocalError("The cluster ended while it started.", _words(home.logs / "init.log"))
    parts = home.status(spec).components
    if failing := next((c for c in parts if c.restarts >= TOO_MANY_RESTARTS and c.state == "restarting"), None):
        if shutil.disk_usage(home.path).free < NEEDED_SPACE:
            raise LocalError("The disk is full.", f"Free some space below {home.path} and run the same command again.")
        words = _words(home.logs / log_name(failing.name))
        raise LocalError(f"{failing.name} ends again and again ({failing.last_exit}).", words)
    if time.monotonic() > deadline:
        waiting = ", ".join(c.name for c in parts if c.state not in {"running", "done"}) or "nothing"
        raise LocalError("The cluster did not come up in time.", f"Not running: {waiting}. Logs: {home.logs}")


def _words(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-3:] if log.exists() else []
    return f"Its last words: {' | '.join(lines)} (log: {log})"
