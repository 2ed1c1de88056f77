"""What has to be free on the machine right now for one more cluster."""

import ctypes
import os
import socket
from pathlib import Path

from kubeslurm.local import network
from kubeslurm.local.errors import LocalError
from kubeslurm.local.state import ClusterSpec

# Counted: the apiserver watches 6 files, the controller manager 2; a kubelet takes 6, containerd 2.
WATCHES_OF_A_CLUSTER = 8
WATCHES_OF_A_NODE = 8
_LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")


def check(spec: ClusterSpec) -> None:
    """Raise a clear error when the cluster could not come up."""
    check_ports(spec.address)
    check_watches(WATCHES_OF_A_CLUSTER + WATCHES_OF_A_NODE * len(spec.nodes))


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


def check_watches(needed: int) -> None:
    """inotify instances are few and shared by all processes of a user: take as many as needed, and give them back."""
    libc = ctypes.CDLL(None, use_errno=True)
    taken: list[int] = []
    try:
        while len(taken) < needed and (fd := libc.inotify_init1(os.O_CLOEXEC)) >= 0:
            taken.append(fd)
    finally:
        for fd in taken:
            os.close(fd)
    if len(taken) < needed:
        raise LocalError(
            f"The cluster needs {needed} inotify instances; of this user's {_LIMIT.read_text().strip()}"
            f" only {len(taken)} are free.",
            "Stop another cluster, ask for fewer nodes, or raise the sysctl fs.inotify.max_user_instances.",
        )
