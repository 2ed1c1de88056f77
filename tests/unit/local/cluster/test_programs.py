import tomllib
from typing import Any

import pytest
import yaml

from kubeslurm.local.cluster import programs
from kubeslurm.local.cluster.nodespec import NodeSpec, Taint
from kubeslurm.local.cluster.programs import NodeResources
from kubeslurm.local.cluster.state import ClusterSpec

NODE = NodeSpec("gpu-1", 7, taints=(Taint("gpu", "yes", "NoSchedule"),))
RESOURCES = NodeResources(reserved_mb=17000, open_files=20000, may_lower_oom_score=False)


def kubelet() -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load(programs.node_files(NODE, RESOURCES)["/etc/kubernetes/kubelet.yaml"])
    return config


def test_a_kubelet_requires_certificates_and_webhook_authorization() -> None:
    config = kubelet()
    assert config["authentication"]["anonymous"] == {"enabled": False}
    assert config["authentication"]["webhook"] == {"enabled": True}
    assert config["authorization"] == {"mode": "Webhook"}
    assert config["readOnlyPort"] == 0


def test_a_node_reserves_the_memory_of_the_other_nodes() -> None:
    assert kubelet()["systemReserved"]["memory"] == "17000Mi"


def test_a_kubelet_registers_with_the_taints_of_its_node() -> None:
    assert kubelet()["registerWithTaints"] == [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]


@pytest.mark.parametrize("can_lower", [True, False])
def test_sandboxes_keep_their_oom_score_if_it_cannot_be_lowered(can_lower: bool) -> None:
    files = programs.node_files(NODE, NodeResources(reserved_mb=1, open_files=1, may_lower_oom_score=can_lower))
    config = tomllib.loads(files["/etc/containerd/config.toml"])
    assert config["plugins"]["io.containerd.cri.v1.runtime"]["restrict_oom_score_adj"] is not can_lower
    assert yaml.safe_load(files["/etc/kubernetes/kubelet.yaml"])["oomScoreAdj"] == (-999 if can_lower else 0)


def test_images_named_localhost_are_pulled_from_the_clusters_registry() -> None:
    hosts = tomllib.loads(programs.render("hosts.toml"))
    assert hosts["server"] == "https://10.250.0.1:5000"
    assert hosts["host"]["https://10.250.0.1:5000"]["ca"] == "/etc/kubernetes/ca.crt"


def test_pods_of_a_node_get_addresses_from_its_own_range() -> None:
    network = yaml.safe_load(programs.node_files(NODE, RESOURCES)["/etc/cni/net.d/10-pods.conflist"])
    assert network["plugins"][0]["ipam"]["ranges"] == [[{"subnet": "10.244.7.0/24"}]]


def test_command_lines_contain_no_comments() -> None:
    found = {**programs.control_plane(ClusterSpec("c", "127.64.0.1", ())), **programs.node(NODE)}
    for name, program in found.items():
        assert program.argv[0].startswith(("etcd", "kube", "coredns", "docker-registry", "containerd", "ctr")), name
        assert all(word.startswith("-") for word in program.argv[1:]) or name in {"coredns", "registry", "pause"}
    assert "--hostname-override=gpu-1" in found["kubelet"].argv


@pytest.mark.parametrize(("fake_nodes", "runs"), [(0, False), (5, True)])
def test_kwok_runs_only_with_fake_nodes(fake_nodes: int, runs: bool) -> None:
    assert ("kwok" in programs.control_plane(ClusterSpec("c", "127.64.0.1", (), fake_nodes))) is runs


@pytest.mark.parametrize("fake_nodes", [5, 1000, 3000, 10000])
def test_fake_nodes_renew_at_most_34_leases_a_second_and_never_count_as_lost(fake_nodes: int) -> None:
    found = programs.control_plane(ClusterSpec("c", "127.64.0.1", (), fake_nodes))
    interval = _seconds(found["kwok"], "--node-lease-duration-seconds=") / 4
    assert fake_nodes / interval < 34
    assert _seconds(found["kube-controller-manager"], "--node-monitor-grace-period=") > interval * 1.5


def test_without_fake_nodes_the_grace_period_of_a_node_is_the_default_of_kubernetes() -> None:
    found = programs.control_plane(ClusterSpec("c", "127.64.0.1", ()))
    assert _seconds(found["kube-controller-manager"], "--node-monitor-grace-period=") == 50


def test_exactly_one_storage_class_is_the_default() -> None:
    classes = [tree for tree in programs.objects("addons.yaml") if tree["kind"] == "StorageClass"]
    default = "storageclass.kubernetes.io/is-default-class"
    assert [c["metadata"]["name"] for c in classes if c["metadata"]["annotations"][default] == "true"] == ["standard"]


def _seconds(program: programs.Program, flag: str) -> int:
    (value,) = (word.removeprefix(flag) for word in program.argv if word.startswith(flag))
    return int(value.removesuffix("s"))
