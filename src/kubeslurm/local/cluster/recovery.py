"""Brings back the nodes of a running cluster that a user has stopped, or whose Node object was deleted."""

import contextlib
import os
import signal

from kubeslurm.local.cluster.cluster import Cluster
from kubeslurm.local.host.progress import Progress


def recover_nodes(cluster: Cluster, progress: Progress) -> bool:
    """Start stopped nodes and let lost ones register again; returns whether there were any."""
    stopped = [node.name for node in cluster.status().nodes if node.state == "stopped"]
    for name in stopped:
        with progress.step(f"start {name}"):
            cluster.node(name).start()
    registered = cluster.kubectl("get", "nodes", "--output=name").split()
    lost = [node.name for node in cluster.spec.nodes if f"node/{node.name}" not in registered]
    for name in lost:
        with progress.step(f"register {name}"):
            _restart_kubelet(cluster, name)
            cluster.kubectl("wait", "--for=create", f"node/{name}", "--timeout=60s")
    return bool(stopped or lost)


def _restart_kubelet(cluster: Cluster, node: str) -> None:
    """A kubelet creates its Node object only when it starts; it is started again at once, and pods go on meanwhile."""
    if pid := cluster.host_pid(f"{node}/kubelet"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
