"""Starting and stopping clusters: what is kept, and what is removed."""

import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubeslurm.local.cluster import network, nodespec, state
from kubeslurm.local.cluster.cluster import Cluster
from kubeslurm.local.errors import LocalError
from tests.local.support import (
    Namespace,
    any_alive,
    control_groups,
    files,
    listeners,
    machine,
    processes,
    service,
    wait_for,
    wait_until_machine_is_as,
)
from tests.support.kubernetes import Kubernetes


@pytest.fixture
def small(state_home: Path) -> Iterator[Kubernetes]:
    """A separate cluster for one test."""
    found = Kubernetes("small")
    yield found
    found.down(purge=True)


def test_down_keeps_the_state_of_a_cluster_and_leaves_nothing_else(small: Cluster) -> None:
    before, files_before = machine(), files()
    assert small.up(nodespec.nodes(1, []))
    wait_until_machine_is_as(before)
    small.kubectl("create", "configmap", "kept", "--from-literal=a=b")
    address, ca = small.spec.address, small.ca.read_bytes()
    running = processes(small)
    assert len(running) > 10
    assert small.down()
    assert not any_alive(running)
    wait_until_machine_is_as(before)
    assert files() - files_before == set()
    assert control_groups(small) == []
    assert not small.home.run.exists()

    assert small.up()
    assert "kept" in small.kubectl("get", "configmap", "kept")
    assert (small.spec.address, small.ca.read_bytes()) == (address, ca)
    assert [node.name for node in small.spec.nodes] == ["node-1"]
    small.down()
    assert small.up(fresh=True)
    assert small.kubectl("get", "configmap", "kept", "--ignore-not-found") == ""
    assert [node.name for node in small.spec.nodes] == ["node-1"]


def test_two_clusters_run_at_the_same_time(cluster: Cluster, small: Cluster) -> None:
    small.up(nodespec.nodes(1, []))
    assert small.spec.address != cluster.spec.address
    assert small.kubectl("get", "nodes", "-o", "name").split() == ["node/node-1"]
    assert len(cluster.kubectl("get", "nodes", "-o", "name").split()) == 3
    small.down()
    wait_for("the other cluster to be ready", lambda: cluster.kubectl("get", "--raw", "/readyz") == "ok")


def test_a_cluster_can_have_no_nodes(small: Cluster) -> None:
    small.up([])
    assert small.kubectl("get", "nodes") == ""
    assert small.kubectl("get", "storageclass", "-o", "name").split() == [
        "storageclass.storage.k8s.io/shared",
        "storageclass.storage.k8s.io/standard",
    ]


def test_nodes_that_are_no_longer_asked_for_are_deleted(small: Cluster) -> None:
    small.up(nodespec.nodes(1, []), fake_nodes=20)
    assert len(small.kubectl("get", "nodes", "-o", "name").split()) == 21
    small.down()
    small.up([], fake_nodes=2)
    assert small.kubectl("get", "nodes", "-o", "name").split() == ["node/fake-1", "node/fake-2"]
    assert list(small.home.nodes.iterdir()) == []


def test_a_port_in_use_is_an_error_before_anything_starts(small: Cluster) -> None:
    address = state.address_for(small.home.path, set())
    with socket.create_server((address, 5000)), pytest.raises(LocalError, match=f"Port 5000 of {address}"):
        small.up([])
    assert not small.running
    assert control_groups(small) == []


def test_up_of_a_running_cluster_changes_nothing(cluster: Cluster) -> None:
    init = cluster.home.init()
    assert not cluster.up(nodespec.nodes(1, []))
    assert cluster.home.init() == init
    assert len(cluster.spec.nodes) == 3


def test_the_kubeconfig_is_readable_only_by_its_owner(cluster: Cluster) -> None:
    assert stat.S_IMODE(cluster.kubeconfig.stat().st_mode) == 0o600
    assert stat.S_IMODE(cluster.home.path.stat().st_mode) == 0o700
    assert [p.name for p in cluster.home.pki.glob("*.key") if stat.S_IMODE(p.stat().st_mode) != 0o600] == []


def test_a_cluster_listens_only_on_its_own_loopback_address(cluster: Cluster, namespace: Namespace) -> None:
    namespace.apply(service("site", type="NodePort"))
    node_port = namespace.get("service/site")["spec"]["ports"][0]["nodePort"]
    assert cluster.spec.address.startswith("127.")
    little_endian = bytes(int(part) for part in reversed(cluster.spec.address.split("."))).hex().upper()
    wait_for("the NodePort", lambda: (little_endian, node_port) in listeners(cluster))
    assert {address for address, _ in listeners(cluster)} == {little_endian}
    assert {network.API_PORT, network.REGISTRY_PORT, node_port} <= {port for _, port in listeners(cluster)}


def test_when_the_init_is_killed_everything_ends_and_up_starts_it_again(small: Cluster) -> None:
    small.up([])
    init = small.home.init()
    assert init is not None
    os.kill(init.pid, signal.SIGKILL)
    wait_for("the init to end", lambda: not small.running)
    with pytest.raises(LocalError, match="is not running"):
        small.status()
    assert control_groups(small) != []
    assert small.up()
    wait_for("the apiserver to be ready", lambda: small.kubectl("get", "--raw", "/readyz") == "ok")


def test_down_stops_a_cluster_whose_init_record_is_lost(small: Cluster) -> None:
    small.up([])
    running = processes(small)
    (small.home.run / "init.json").unlink()
    assert not small.running
    assert small.down()
    assert not any_alive(running)
    assert control_groups(small) == []


# An `up` that waits for ever instead of until the cluster is ready, so that the signal always comes in time.
ENDLESS_UP = """
import signal
from kubeslurm.local.cluster import readiness
from kubeslurm.local.cluster.cluster import Cluster

def wait(*_):
    print("waiting", flush=True)
    while True:
        signal.pause()

signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore SIGINT in background processes
readiness.wait_until_ready = wait
Cluster("small").up([])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_up_leaves_nothing_running(small: Cluster, number: signal.Signals, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as out, subprocess.Popen([sys.executable, "-c", ENDLESS_UP], stdout=out, stderr=out) as command:
        wait_for("`up` to wait", lambda: "waiting\n" in log.read_text(), story=log.read_text)
        init = wait_for("the init to start", small.home.init)
        running = wait_for("processes of the cluster", lambda: processes(small))
        command.send_signal(number)
    wait_for("every process to end", lambda: not any_alive(running | {(init.pid, init.started)}))
    if number == signal.SIGINT:
        assert control_groups(small) == []
        assert not small.home.run.exists()
