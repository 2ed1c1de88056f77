"""Nodes: their labels, taints and resources, and what happens when they or their components fail."""

import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubeslurm.local.cluster.cluster import Cluster
from kubeslurm.local.errors import LocalError
from kubeslurm.local.host.supervisor import ComponentStatus
from tests.local.support import Namespace, claim, pod, wait_for


def test_nodes_have_the_labels_taints_and_resources_of_their_spec(namespace: Namespace) -> None:
    # A node that just started, or reported late, has a taint of Kubernetes for a while.
    taints = [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]
    wait_for("exactly its own taint", lambda: namespace.get("node/gpu-1")["spec"].get("taints") == taints)
    gpu = namespace.get("node/gpu-1")
    assert gpu["metadata"]["labels"]["tier"] == "fast"
    assert gpu["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert "nvidia.com/gpu" not in namespace.get("node/node-1")["status"]["allocatable"]


def test_pods_with_fake_gpus_run_on_the_node_that_has_them(namespace: Namespace) -> None:
    toleration = {"key": "gpu", "operator": "Exists"}
    limits = {"resources": {"limits": {"nvidia.com/gpu": "2"}}}
    namespace.start(pod("trainer", container=limits, tolerations=[toleration]))
    assert namespace.get("pod/trainer")["spec"]["nodeName"] == "gpu-1"


def test_the_allocatable_memory_of_all_nodes_fits_the_machine(cluster: Cluster) -> None:
    nodes = Namespace(cluster, "default").get("nodes")["items"]
    total = sum(int(node["status"]["allocatable"]["memory"].removesuffix("Ki")) for node in nodes)
    machine = int(Path("/proc/meminfo").read_text().split()[1])
    assert 0 < total <= machine


def test_kubelets_reject_requests_without_a_certificate(cluster: Cluster) -> None:
    fetch = "import ssl, urllib.request as r; r.urlopen('{}', context=ssl._create_unverified_context(), timeout=120)"

    def answer(url: str) -> str:
        return cluster.exec_in_network([sys.executable, "-c", fetch.format(url)]).stderr

    wait_for(
        "the kubelet to reject the request", lambda: "401: Unauthorized" in answer("https://10.250.1.1:10250/pods")
    )
    assert "Connection refused" in answer("http://10.250.1.1:10255/pods")


def test_a_kubelet_can_only_change_its_own_node(cluster: Cluster) -> None:
    config = "/etc/kubernetes/kubelet.kubeconfig"
    kubectl = ["kubectl", f"--kubeconfig={config}"]
    own = [*kubectl, "get", "node", "node-1"]
    wait_for("its own node", lambda: cluster.exec_in_node("node-1", own).returncode == 0)
    label = cluster.exec_in_node("node-1", [*kubectl, "label", "node", "node-2", "mine=yes"])
    assert label.returncode != 0
    assert "only its own Node object" in label.stderr
    assert cluster.exec_in_node("node-1", ["ls", "/cluster"]).returncode != 0


def test_a_node_shows_the_kernel_settings_that_a_kubelet_requires(cluster: Cluster) -> None:
    inside = cluster.exec_in_node("node-1", ["cat", "/proc/sys/kernel/panic"]).stdout.strip()
    assert inside == "10"
    assert cluster.exec_in_node("node-1", ["sysctl", "-n", "net.ipv4.ip_forward"]).stdout.strip() == "1"


COMPONENTS = [
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "coredns",
    "registry",
    "local-controller",
    "node-1/containerd",
    "node-1/kubelet",
    "node-1/kube-proxy",
]


def component(cluster: Cluster, name: str) -> ComponentStatus:
    return next(c for c in cluster.status().components if c.name == name)


def kill(cluster: Cluster, name: str) -> ComponentStatus | None:
    """Kill a component and return its status before; None if it has no process."""
    before = component(cluster, name)
    if pid := cluster.host_pid(name):
        with contextlib.suppress(ProcessLookupError):  # it has exited
            os.kill(pid, signal.SIGKILL)
            return before
    return None


@pytest.mark.parametrize("name", COMPONENTS)
def test_a_killed_component_is_restarted(cluster: Cluster, namespace: Namespace, name: str) -> None:
    before = wait_for(f"a process for {name}", lambda: kill(cluster, name))
    restarted = wait_for(f"{name} to run again", lambda: _restarted(cluster, before))
    # A component that starts before another one is back may exit again; last_exit is then that of the second exit.
    assert restarted.restarts > before.restarts + 1 or "signal 9" in restarted.last_exit
    # A successful write proves more than /readyz.
    touch = ("annotate", "serviceaccount", "default", "touched=yes", "--overwrite")
    wait_for("a write to the API server", lambda: namespace.kubectl(*touch))


def _restarted(cluster: Cluster, before: ComponentStatus) -> ComponentStatus | None:
    now = component(cluster, before.name)
    return now if now.state == "running" and now.restarts > before.restarts else None


def test_pods_and_dns_work_after_all_restarts(cluster: Cluster, namespace: Namespace) -> None:
    namespace.start(pod("one", node="node-1"), pod("two", node="node-2"))
    look_up = "nslookup kubernetes.default.svc.cluster.local || true"
    wait_for("DNS", lambda: "10.96.0.1" in namespace.sh("one", look_up))


def test_a_killed_node_stays_down_until_it_is_started(cluster: Cluster, namespace: Namespace) -> None:
    namespace.start(pod("survivor", node="node-2"))
    with stopped(cluster, "node-2", kill=True), pytest.raises(LocalError, match="not running"):
        cluster.exec_in_node("node-2", ["true"])
    wait_for("the pod to run again on its node", lambda: _restarts(namespace, "survivor") > 0)
    namespace.wait("pod/survivor", "condition=Ready")
    assert namespace.sh("survivor", "echo here") == "here"


def _restarts(namespace: Namespace, name: str) -> int:
    return int(namespace.get(f"pod/{name}")["status"]["containerStatuses"][0]["restartCount"])


@contextlib.contextmanager
def stopped(cluster: Cluster, name: str, *, kill: bool = False) -> Iterator[None]:
    """Stop a node for the duration of the block."""
    node = cluster.node(name)
    node.kill() if kill else node.stop()
    try:
        assert node.status.state == "stopped"
        yield
    finally:
        node.start()
    assert node.status.state == "running"


def test_pods_of_a_stopped_node_get_sigterm(cluster: Cluster, namespace: Namespace) -> None:
    # The pod writes to a volume, not to its log: containerd, which writes the log, ends at the same time.
    script = "trap 'echo bye > /data/file; exit 0' TERM; while true; do sleep 0.1; done"
    namespace.apply(claim("data", "ReadWriteOnce"))
    namespace.start(
        pod(
            "graceful",
            script,
            node="node-2",
            container={"volumeMounts": [{"name": "data", "mountPath": "/data"}]},
            volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        )
    )
    volume = namespace.get("persistentvolumeclaim/data")["spec"]["volumeName"]
    with stopped(cluster, "node-2"):
        assert (cluster.home.volumes / volume / "file").read_text() == "bye\n"
    wait_for("the pod to run again", lambda: _restarts(namespace, "graceful") > 0)


def test_the_mac_address_of_the_bridge_does_not_change_with_the_nodes(cluster: Cluster) -> None:
    # A bridge without a fixed address has the lowest of its ports, which changes when that port leaves or a lower one
    # joins. Every node leaves and joins once, so that one of the two would happen here.
    before = _bridge_mac(cluster)
    for node in cluster.spec.nodes:
        with stopped(cluster, node.name, kill=True):
            assert _bridge_mac(cluster) == before
        assert _bridge_mac(cluster) == before
    cluster.kubectl("wait", "--for=condition=Ready", "nodes", "--all", "--timeout=300s")


def _bridge_mac(cluster: Cluster) -> str:
    """The MAC address of the bridge, which the nodes have in their ARP tables."""
    (link,) = json.loads(cluster.exec_in_network(["ip", "-json", "link", "show", "br0"]).stdout)
    return str(link["address"])


def test_a_node_whose_init_is_killed_is_restarted(cluster: Cluster) -> None:
    before = wait_for("the node to run", lambda: _running(cluster))
    os.kill(before.pid, signal.SIGKILL)
    wait_for("the node to run again", lambda: _restarted_node(cluster, before.restarts))
    wait_for("the extended resources", lambda: _gpus(cluster) == "8")


def _running(cluster: Cluster) -> ComponentStatus | None:
    now = cluster.node("gpu-1").status
    return now if now.state == "running" and now.pid else None


def _restarted_node(cluster: Cluster, restarts: int) -> bool:
    now = _running(cluster)
    return now is not None and now.restarts > restarts


def _gpus(cluster: Cluster) -> str:
    return cluster.kubectl("get", "node", "gpu-1", "-o", r"jsonpath={.status.allocatable.nvidia\.com/gpu}")
