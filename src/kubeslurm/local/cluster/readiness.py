"""Checks whether a cluster can start, and waits until it is up: all nodes Ready, and DNS answers on every node."""

import ctypes
import os
import socket
import time
from itertools import takewhile
from pathlib import Path

from kubeslurm.local.cluster import network
from kubeslurm.local.cluster.state import ClusterSpec, Home, log_name
from kubeslurm.local.errors import LocalError
from kubeslurm.local.host import disk, kernel
from kubeslurm.local.host.progress import Step

API_NAME = f"kubernetes.default.svc.{network.DOMAIN}"
MAX_RESTARTS = 8
# As measured: kube-apiserver 6 and kube-controller-manager 2; on each node kubelet 6 and containerd 2.
INOTIFY_INSTANCES = 8


def check_ports(address: str) -> None:
    """Raise if a port is taken: the address is the cluster's own, but a program may listen on all addresses."""
    for port in (network.API_PORT, network.REGISTRY_PORT):
        try:
            socket.create_server((address, port)).close()
        except OSError as error:
            raise LocalError(
                f"Port {port} of {address} cannot be used: {error.strerror}.",
                "Stop the program that listens on this port of all addresses.",
            ) from error


def check_inotify(nodes: int) -> None:
    """Raise if too few inotify instances are free; all processes of a user share them. Opens them for a moment."""
    libc = ctypes.CDLL(None, use_errno=True)
    required = INOTIFY_INSTANCES * (1 + nodes)
    attempts = (libc.inotify_init1(os.O_CLOEXEC) for _ in range(required))
    opened = list(takewhile(lambda fd: fd >= 0, attempts))
    for fd in opened:
        os.close(fd)
    if len(opened) < required:
        limit = Path("/proc/sys/fs/inotify/max_user_instances").read_text().strip()
        raise LocalError(
            f"The cluster needs {required} inotify instances; of this user's {limit} only {len(opened)} are free.",
            "Stop another cluster, start fewer nodes, or raise the sysctl fs.inotify.max_user_instances.",
        )


def wait_until_ready(home: Home, spec: ClusterSpec, step: Step, deadline: float) -> None:
    """Wait until the cluster is up; raise if it cannot come up."""
    names = {node.name for node in spec.nodes}
    while True:
        now = home.readiness()
        missing = names.difference(now.nodes_ready)
        ready = len(names) - len(missing) + now.fake_nodes_ready
        step.update(done=ready, total=len(names) + spec.fake_nodes, note="nodes ready")
        if home.serving.exists() and not missing and now.fake_nodes_ready >= spec.fake_nodes:
            break
        _check(home, spec, deadline)
        time.sleep(0.05)
    step.update(note="waiting for cluster DNS")
    while not all(dns_answers(node.pid) for node in home.status(spec).nodes):
        _check(home, spec, deadline)


def dns_answers(pid: int) -> bool:
    """Whether cluster DNS resolves the name of a Service, asked from the node with this pid."""
    name = b"".join(bytes([len(part)]) + part.encode() for part in API_NAME.split("."))
    try:
        with (
            Path(f"/proc/{pid}/ns/net").open() as netns,
            kernel.socket_in(netns.fileno(), lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as query,
        ):
            query.settimeout(0.25)
            # A DNS query: the header with one question, then the name, type A, class IN.
            query.sendto(b"\0\0\1\0\0\1\0\0\0\0\0\0" + name + b"\0\0\1\0\1", (network.DNS_SERVICE, 53))
            answers = query.recv(512)[6:8]
    except OSError:
        time.sleep(0.02)
        return False
    return answers > b"\0\0"


def _check(home: Home, spec: ClusterSpec, deadline: float) -> None:
    """Raise if the cluster has ended, a component keeps exiting, or the deadline has passed."""
    if home.init() is None:
        raise LocalError("The cluster exited during its start.", _log_tail(home.logs / "init.log"))
    components = home.status(spec).components
    if failing := next((c for c in components if c.restarts >= MAX_RESTARTS and c.state == "restarting"), None):
        if disk.is_full(home.path):
            raise LocalError("The disk is full.", f"Free some space below {home.path} and run the same command again.")
        tail = _log_tail(home.logs / log_name(failing.name))
        raise LocalError(f"{failing.name} keeps exiting ({failing.last_exit}).", tail)
    if time.monotonic() > deadline:
        waiting = ", ".join(c.name for c in components if c.state not in {"running", "done"}) or "nothing"
        raise LocalError("The cluster did not come up in time.", f"Not running: {waiting}. Logs: {home.logs}")


def _log_tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-3:] if log.exists() else []
    return f"Last lines of its log: {' | '.join(lines)} (log: {log})"
