from typing import Any, cast

import pytest

from kubeslurm.local.cluster import nodespec, recovery
from kubeslurm.local.cluster.cluster import Cluster
from kubeslurm.local.cluster.state import ClusterSpec, Status
from kubeslurm.local.host.progress import Progress
from kubeslurm.local.host.supervisor import ComponentStatus


class Running:
    """A cluster with two nodes, and what was done to it."""

    def __init__(self, states: tuple[str, str], registered: str) -> None:
        self.spec = ClusterSpec("c", "127.64.0.1", tuple(nodespec.nodes(2, [])))
        self.states = states
        self.registered = registered
        self.acts: list[str] = []

    def status(self) -> Status:
        return Status([], [ComponentStatus(f"node-{n}", state) for n, state in enumerate(self.states, 1)])

    def node(self, name: str) -> Any:
        class Node:
            start = staticmethod(lambda: self.acts.append(f"start {name}"))

        return Node

    def kubectl(self, *args: str) -> str:
        if args[0] == "get":
            return self.registered
        self.acts.append(" ".join(args[:3]))
        return ""

    def host_pid(self, component: str) -> int:
        self.acts.append(f"restart {component}")
        return 0


def recover(states: tuple[str, str], registered: str = "node/node-1\nnode/node-2\n") -> tuple[bool, list[str]]:
    cluster = Running(states, registered)
    return recovery.recover_nodes(cast("Cluster", cluster), Progress()), cluster.acts


def test_a_cluster_with_all_its_nodes_is_left_alone() -> None:
    assert recover(("running", "running")) == (False, [])


def test_stopped_nodes_are_started() -> None:
    assert recover(("running", "stopped")) == (True, ["start node-2"])


@pytest.mark.parametrize("registered", ["node/node-1\n", "node/node-1\nnode/node-22\n"])
def test_the_kubelet_of_a_node_without_an_object_is_restarted(registered: str) -> None:
    acts = ["restart node-2/kubelet", "wait --for=create node/node-2"]
    assert recover(("running", "running"), registered) == (True, acts)
