import tomllib
from typing import Any

import pytest
import yaml

from kubeslurm.local.cluster import programs
from kubeslurm.local.cluster.nodespec import NodeSpec, Taint
from kubeslurm.local.cluster.programs import Share
from kubeslurm.local.cluster.state import ClusterSpec

NODE = NodeSpec("gpu-1", 7, taints=(Taint("gpu", "yes", "NoSchedule"),))
SHARE = Share(reserved_mb=17000, open_files=20000, may_lower_oom_score=False)


def kubelet() -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load(programs.node_files(NODE, SHARE)["/etc/kubernetes/kubelet.yaml"])
    return config


def test_a_kubelet_trusts_certificates_only_and_lets_the_apiserver_decide() -> None:
    config = kubelet()
    assert config["authentication"]["anonymous"] == {"enabled": False}
    assert config["authentication"]["webhook"] == {"enabled": True}
    assert config["authorization"] == {"mode": "Webhook"}
    assert config["readOnlyPort"] == 0


def test_a_node_hands_out_its_share_of_the_machine() -> None:
    assert kubelet()["systemReserved"]["memory"] == "17000Mi"


def test_taints_are_there_from_the_first_moment() -> None:
    assert kubelet()["registerWithTaints"] == [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]


@pytest.mark.parametrize("may", [True, False])
def test_sandboxes_keep_their_oom_score_where_it_cannot_be_lowered(may: bool) -> None:
    files = programs.node_files(NODE, Share(reserved_mb=1, open_files=1, may_lower_oom_score=may))
    config = tomllib.loads(files["/etc/containerd/config.toml"])
    assert config["plugins"]["io.containerd.cri.v1.runtime"]["restrict_oom_score_adj"] is not may
    assert yaml.safe_load(files["/etc/kubernetes/kubelet.yaml"])["oomScoreAdj"] == (-999 if may else 0)


def test_images_of_localhost_come_from_the_clusters_registry() -> None:
    hosts = tomllib.loads(programs.fill("hosts.toml"))
    assert hosts["server"] == "https://10.250.0.1:5000"
    assert hosts["host"]["https://10.250.0.1:5000"]["ca"] == "/etc/kubernetes/ca.crt"


def test_pods_of_a_node_live_in_its_own_network() -> None:
    network = yaml.safe_load(programs.node_files(NODE, SHARE)["/etc/cni/net.d/10-pods.conflist"])
    assert network["plugins"][0]["ipam"]["ranges"] == [[{"subnet": "10.244.7.0/24"}]]


def test_command_lines_are_whole_and_free_of_their_comments() -> None:
    parts = {**programs.control_plane(ClusterSpec("c", "127.64.0.1", ())), **programs.node(NODE)}
    for name, part in parts.items():
        assert part.argv[0].startswith(("etcd", "kube", "coredns", "docker-registry", "containerd", "ctr")), name
        assert all(word.startswith("-") for word in part.argv[1:]) or name in {"coredns", "registry", "pause"}
    assert "--hostname-override=gpu-1" in parts["kubelet"].argv


@pytest.mark.parametrize(("fake", "there"), [(0, False), (5, True)])
def test_kwok_runs_only_with_fake_nodes(fake: int, there: bool) -> None:
    assert ("kwok" in programs.control_plane(ClusterSpec("c", "127.64.0.1", (), fake))) is there


@pytest.mark.parametrize("fake", [5, 1000, 3000, 10000])
def test_however_many_nodes_are_pretended_their_leases_do_not_drown_the_api_server(fake: int) -> None:
    parts = programs.control_plane(ClusterSpec("c", "127.64.0.1", (), fake))
    renewed = _seconds(parts["kwok"], "--node-lease-duration-seconds=") / 4
    assert fake / renewed < 34
    assert _seconds(parts["kube-controller-manager"], "--node-monitor-grace-period=") > renewed * 1.5


def test_without_many_pretended_nodes_a_lost_one_is_noticed_as_soon_as_elsewhere() -> None:
    parts = programs.control_plane(ClusterSpec("c", "127.64.0.1", ()))
    assert _seconds(parts["kube-controller-manager"], "--node-monitor-grace-period=") == 50


def _seconds(part: programs.Program, flag: str) -> int:
    (value,) = (word.removeprefix(flag) for word in part.argv if word.startswith(flag))
    return int(value.removesuffix("s"))
