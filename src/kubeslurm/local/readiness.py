"""When a cluster is up: every node Ready, and every node gets an answer from cluster DNS."""

import os
import secrets
import socket
import struct
import time
from pathlib import Path
from typing import Protocol

from kubeslurm.local import kernel, network
from kubeslurm.local.control import Reply
from kubeslurm.local.errors import LocalError
from kubeslurm.local.progress import Step
from kubeslurm.local.state import ClusterSpec, Home, Reached

TOO_MANY_RESTARTS = 8


class Awaited(Protocol):
    """What is needed of a cluster here."""

    home: Home

    @property
    def running(self) -> bool: ...
    @property
    def spec(self) -> ClusterSpec: ...
    def status(self) -> Reply: ...
    def reached(self) -> Reached: ...


def wait_until_ready(cluster: Awaited, step: Step, *, deadline: float) -> None:
    """Return when the cluster is up; raise when it cannot come up."""
    spec = cluster.spec
    wanted = {node.name for node in spec.nodes}
    while True:
        reached = cluster.reached()
        missing = wanted - set(reached.nodes_ready)
        step.update(done=len(wanted) - len(missing), total=len(wanted), note="nodes ready")
        if reached.serving and not missing and reached.fake_nodes_ready >= spec.fake_nodes:
            break
        _check(cluster, deadline)
        time.sleep(0.05)
    step.update(note="waiting for cluster DNS")
    for node in cluster.status().nodes:
        while not dns_answers(node.pid):
            _check(cluster, deadline)


def dns_answers(pid: int, name: str = f"kubernetes.default.svc.{network.DOMAIN}") -> bool:
    """Whether a process in this node would learn the address of a Service."""
    fd = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    try:
        with kernel.socket_in(fd, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as query:
            query.settimeout(0.25)
            question = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
            header = struct.pack(">HHHHHH", secrets.randbits(16), 0x0100, 1, 0, 0, 0)
            query.sendto(header + question + b"\0\0\1\0\1", (network.DNS_SERVICE, 53))
            answer = query.recv(512)
    except OSError:
        time.sleep(0.02)
        return False
    finally:
        os.close(fd)
    return answer[:2] == header[:2] and struct.unpack(">H", answer[6:8])[0] > 0


def _check(cluster: Awaited, deadline: float) -> None:
    """Give up when the cluster is gone, a part ends again and again, or time is up."""
    logs = cluster.home.logs
    if not cluster.running:
        raise LocalError("The cluster ended while it started.", _words(logs / "init.log"))
    if not (cluster.home.run / "control.sock").exists():
        return
    components = cluster.status().components
    failing = next((c for c in components if c.restarts >= TOO_MANY_RESTARTS and c.state == "restarting"), None)
    if failing:
        raise LocalError(
            f"{failing.name} ends again and again ({failing.last_exit}).", _words(logs / log_name(failing.name))
        )
    if time.monotonic() > deadline:
        waiting = ", ".join(c.name for c in components if c.state not in {"running", "done"})
        raise LocalError("The cluster did not come up in time.", f"Not running: {waiting or 'nothing'}. Logs: {logs}")


def log_name(component: str) -> str:
    """File name of a component's log."""
    return f"{component.replace('/', '.')}.log"


def tail(log: Path, lines: int = 5) -> list[str]:
    """The last lines of a log."""
    return log.read_text(errors="replace").splitlines()[-lines:] if log.exists() else []


def _words(log: Path) -> str:
    return f"Its last words: {' | '.join(tail(log, 3))} (log: {log})"
