"""Which Kubernetes node runs what, and what may be done to a node: asked when it is needed, never assumed."""

from collections.abc import Iterator
from contextlib import contextmanager

from kubeslurm.api.meta import Tree
from tests.support.kubernetes import Kubernetes
from tests.support.slurm import Slurm
from tests.support.waiting import wait_for

HOSTNAME = "kubernetes.io/hostname"


def prefer(node: str) -> Tree:
    """Values of the slurm chart that put slurmctld on a node; it may still leave the node when that is lost."""
    where = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [node]}]}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": where}]}
    return {"controller": {"podSpec": {"affinity": {"nodeAffinity": preferred}}}}


def of_slurmctld(slurm: Slurm) -> str:
    """The node of slurmctld, as soon as it has one."""
    return wait_for("a node for slurmctld", lambda: _node(slurm.find("pod", slurm.controller)))


def bring_home(slurm: Slurm, node: str) -> None:
    """Moves slurmctld back to the node that it prefers, if a test has driven it away."""

    def is_home() -> bool:
        if of_slurmctld(slurm) == node:
            return True
        slurm.kubectl("delete", "pod", slurm.controller, "--wait=true", "--timeout=180s", check=False)
        return False

    wait_for(f"slurmctld on {node}", is_home, every=1.0, story=lambda: f"it is on {of_slurmctld(slurm)}")


def free_node(slurm: Slurm) -> str:
    """A node without slurmctld and without a worker of this Slurm cluster."""
    pods = slurm.items("pods", selector="app.kubernetes.io/name in (slurmctld,slurmd)")
    taken = {_node(pod) for pod in pods}
    free = [node.name for node in slurm.cluster.spec.nodes if node.name not in taken]
    assert free, f"slurmctld and workers are on every node: {taken}"
    return free[0]


@contextmanager
def powered_off(slurm: Slurm, node: str, *, with_slurmctld: bool = False) -> Iterator[None]:
    """A node without power; it comes back whatever happens."""
    _check(slurm, node, with_slurmctld)
    slurm.cluster.node(node).kill()
    try:
        yield
    finally:
        slurm.cluster.node(node).start()


@contextmanager
def kubelet_stopped(slurm: Slurm, node: str) -> Iterator[None]:
    """A node whose kubelet does not work, while its containers do; the kubelet goes on whatever happens."""
    _check(slurm, node, False)
    kubelet = _kubelet(slurm.cluster, node)
    slurm.cluster.exec_in_node(node, ["kill", "-STOP", *kubelet])
    try:
        yield
    finally:
        slurm.cluster.exec_in_node(node, ["kill", "-CONT", *kubelet])


def is_unreachable(slurm: Slurm, node: str) -> bool:
    """Whether Kubernetes has given the node up."""
    taints = slurm.get("node", node)["spec"].get("taints", [])
    return any(taint["key"] == "node.kubernetes.io/unreachable" for taint in taints)


def _check(slurm: Slurm, node: str, with_slurmctld: bool) -> None:
    """Slurm is asked by way of the kubelet of slurmctld: without that kubelet a test learns nothing any more."""
    is_there = of_slurmctld(slurm) == node
    said = f"slurmctld is {'' if is_there else 'not '}on {node}"
    assert is_there == with_slurmctld, f"{said}: choose the node by what runs there"


def _kubelet(cluster: Kubernetes, node: str) -> list[str]:
    def running() -> list[str]:
        return cluster.exec_in_node(node, ["pidof", "kubelet"]).stdout.split()

    return wait_for(f"the kubelet of {node}", running)


def _node(pod: Tree | None) -> str:
    return str(pod["spec"].get("nodeName", "")) if pod else ""
