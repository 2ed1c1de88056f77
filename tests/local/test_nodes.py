"""Nodes: what they are given, and what happens when they or their parts fail."""

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
from kubeslurm.local.host.supervisor import Condition
from tests.local.support import Namespace, claim, pod, wait_for


def test_nodes_have_the_labels_taints_and_resources_they_were_given(namespace: Namespace) -> None:
    # A node that has just come up, or was slow to say that it is well, has a taint of Kubernetes' own for a while.
    taints = [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]
    wait_for("its taint and no other", lambda: namespace.get("node/gpu-1")["spec"].get("taints") == taints)
    gpu = namespace.get("node/gpu-1")
    assert gpu["metadata"]["labels"]["tier"] == "fast"
    assert gpu["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert "nvidia.com/gpu" not in namespace.get("node/node-1")["status"]["allocatable"]


def test_pods_get_pretended_gpus_only_where_they_are(namespace: Namespace) -> None:
    toleration = {"key": "gpu", "operator": "Exists"}
    asks = {"resources": {"limits": {"nvidia.com/gpu": "2"}}}
    namespace.start(pod("trainer", container=asks, tolerations=[toleration]))
    assert namespace.get("pod/trainer")["spec"]["nodeName"] == "gpu-1"


def test_memory_that_nodes_hand_out_fits_the_machine(cluster: Cluster) -> None:
    nodes = Namespace(cluster, "default").get("nodes")["items"]
    total = sum(int(node["status"]["allocatable"]["memory"].removesuffix("Ki")) for node in nodes)
    machine = int(Path("/proc/meminfo").read_text().split()[1])
    assert 0 < total <= machine


def test_kubelets_refuse_whoever_has_no_certificate(cluster: Cluster) -> None:
    fetch = "import ssl, urllib.request as r; r.urlopen('{}', context=ssl._create_unverified_context(), timeout=120)"

    def answer(url: str) -> str:
        return cluster.fabric_exec([sys.executable, "-c", fetch.format(url)]).stderr

    wait_for("the kubelet to refuse", lambda: "401: Unauthorized" in answer("https://10.250.1.1:10250/pods"))
    assert "Connection refused" in answer("http://10.250.1.1:10255/pods")


def test_a_kubelets_certificate_opens_only_what_belongs_to_its_node(cluster: Cluster) -> None:
    config = "/etc/kubernetes/kubelet.kubeconfig"
    kubectl = ["kubectl", f"--kubeconfig={config}"]
    own = [*kubectl, "get", "node", "node-1"]
    wait_for("what it may see", lambda: cluster.exec_in_node("node-1", own).returncode == 0)
    label = cluster.exec_in_node("node-1", [*kubectl, "label", "node", "node-2", "mine=yes"])
    assert label.returncode != 0
    assert "only its own Node object" in label.stderr
    assert cluster.exec_in_node("node-1", ["ls", "/cluster"]).returncode != 0


def test_the_machines_kernel_settings_stay_as_they_are(cluster: Cluster) -> None:
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
    "keeper",
    "node-1/containerd",
    "node-1/kubelet",
    "node-1/kube-proxy",
]


def component(cluster: Cluster, name: str) -> Condition:
    return next(c for c in cluster.status().components if c.name == name)


def killed(cluster: Cluster, name: str) -> Condition | None:
    """Finds the component by its number in its own pid namespace, and kills it from outside; how it was before."""
    found = component(cluster, name)
    record = cluster.home.init()
    assert record is not None
    node, inside, _ = name.partition("/")
    parent = cluster.node(node).condition.pid if inside else record.pid
    for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        with contextlib.suppress(OSError):  # a child that has ended meanwhile
            numbers = Path(f"/proc/{child}/status").read_text().split("NSpid:")[1].splitlines()[0].split()
            if int(numbers[-1]) == found.pid:
                os.kill(int(child), signal.SIGKILL)
                return found
    return None


@pytest.mark.parametrize("name", COMPONENTS)
def test_a_killed_component_comes_back(cluster: Cluster, namespace: Namespace, name: str) -> None:
    before = wait_for(f"a process for {name}", lambda: killed(cluster, name))
    restarted = wait_for(f"{name} to run again", lambda: _restarted(cluster, before))
    # What starts while another part is not back yet may end once more, and then that is what it says.
    assert restarted.restarts > before.restarts + 1 or "signal 9" in restarted.last_exit
    # A write: more than the apiserver's word that it is ready.
    touch = ("annotate", "serviceaccount", "default", "touched=yes", "--overwrite")
    wait_for("something to be written", lambda: namespace.kubectl(*touch))


def _restarted(cluster: Cluster, before: Condition) -> Condition | None:
    now = component(cluster, before.name)
    return now if now.state == "running" and now.restarts > before.restarts else None


def test_everything_still_works_after_all_those_restarts(cluster: Cluster, namespace: Namespace) -> None:
    namespace.start(pod("one", node="node-1"), pod("two", node="node-2"))
    look_up = "nslookup kubernetes.default.svc.cluster.local || true"
    wait_for("DNS", lambda: "10.96.0.1" in namespace.sh("one", look_up))


def test_a_killed_node_stays_down_until_started_and_then_returns(cluster: Cluster, namespace: Namespace) -> None:
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
    """A node that is down for the length of a block."""
    node = cluster.node(name)
    node.kill() if kill else node.stop()
    try:
        assert node.condition.state == "stopped"
        yield
    finally:
        node.start()
    assert node.condition.state == "running"


def test_a_stopped_node_lets_its_pods_end_in_order(cluster: Cluster, namespace: Namespace) -> None:
    # Its last word goes to a volume: to its log it comes by way of containerd, which ends at the same time.
    script = "trap 'echo bye > /data/word; exit 0' TERM; while true; do sleep 0.1; done"
    namespace.apply(claim("data", "ReadWriteOnce"))
    namespace.start(
        pod(
            "polite",
            script,
            node="node-2",
            container={"volumeMounts": [{"name": "data", "mountPath": "/data"}]},
            volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        )
    )
    volume = namespace.get("persistentvolumeclaim/data")["spec"]["volumeName"]
    with stopped(cluster, "node-2"):
        assert (cluster.home.volumes / volume / "word").read_text() == "bye\n"
    wait_for("the pod to run again", lambda: _restarts(namespace, "polite") > 0)


def test_a_node_that_leaves_or_comes_cuts_nobody_off(cluster: Cluster) -> None:
    # A bridge without an address of its own takes the lowest of its members: it changes when that one leaves, or when
    # a lower one comes. Every node leaves once, so one of the two would happen here whatever the addresses are.
    bridge = _bridge(cluster)
    for node in cluster.spec.nodes:
        with stopped(cluster, node.name, kill=True):
            assert _bridge(cluster) == bridge
        assert _bridge(cluster) == bridge
    cluster.kubectl("wait", "--for=condition=Ready", "nodes", "--all", "--timeout=300s")


def _bridge(cluster: Cluster) -> str:
    """The hardware address of the bridge, behind which the API server is; its neighbours remember it."""
    (link,) = json.loads(cluster.fabric_exec(["ip", "-json", "link", "show", "br0"]).stdout)
    return str(link["address"])


def test_a_node_whose_first_process_dies_is_started_again(cluster: Cluster) -> None:
    before = wait_for("the node to run", lambda: _running(cluster))
    os.kill(before.pid, signal.SIGKILL)
    wait_for("the node to run again", lambda: _came_back(cluster, before.restarts))
    wait_for("the extended resources to be shown again", lambda: _gpus(cluster) == "8")


def _running(cluster: Cluster) -> Condition | None:
    now = cluster.node("gpu-1").condition
    return now if now.state == "running" and now.pid else None


def _came_back(cluster: Cluster, restarts: int) -> bool:
    now = _running(cluster)
    return now is not None and now.restarts > restarts


def _gpus(cluster: Cluster) -> str:
    return cluster.kubectl("get", "node", "gpu-1", "-o", r"jsonpath={.status.allocatable.nvidia\.com/gpu}")
