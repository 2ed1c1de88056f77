import tomllib
from pathlib import Path

import pytest
import yaml

from kubeslurm.local import nodeconfig
from kubeslurm.local.nodespec import NodeSpec, Taint
from kubeslurm.local.supervisor import bound

NODE = NodeSpec("gpu-1", 7, taints=(Taint("gpu", "yes", "NoSchedule"),))
MACHINE = nodeconfig.Machine(memory_mb=24000, share_mb=7000, open_files=20000, may_lower_oom_score=False)


def test_a_kubelet_trusts_certificates_only_and_lets_the_apiserver_decide() -> None:
    config = yaml.safe_load(nodeconfig.kubelet(NODE, MACHINE))
    assert config["authentication"]["anonymous"] == {"enabled": False}
    assert config["authentication"]["webhook"] == {"enabled": True}
    assert config["authorization"] == {"mode": "Webhook"}
    assert config["readOnlyPort"] == 0


def test_a_node_hands_out_its_share_of_the_machine() -> None:
    config = yaml.safe_load(nodeconfig.kubelet(NODE, MACHINE))
    assert config["systemReserved"]["memory"] == "17000Mi"


def test_taints_are_there_from_the_first_moment() -> None:
    config = yaml.safe_load(nodeconfig.kubelet(NODE, MACHINE))
    assert config["registerWithTaints"] == [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]


@pytest.mark.parametrize("may", [True, False])
def test_sandboxes_keep_their_oom_score_where_it_cannot_be_lowered(may: bool) -> None:
    machine = nodeconfig.Machine(memory_mb=1, share_mb=1, open_files=1, may_lower_oom_score=may)
    config = tomllib.loads(nodeconfig.containerd(machine))
    assert config["plugins"]["io.containerd.cri.v1.runtime"]["restrict_oom_score_adj"] is not may


def test_images_of_localhost_come_from_the_clusters_registry() -> None:
    hosts = tomllib.loads(nodeconfig.registry_hosts())
    assert hosts["server"] == "https://10.250.0.1:5000"
    assert hosts["host"]["https://10.250.0.1:5000"]["ca"] == "/etc/kubernetes/ca.crt"


def test_pods_of_a_node_live_in_its_own_network() -> None:
    network = yaml.safe_load(nodeconfig.pod_network(NODE))
    assert network["plugins"][0]["ipam"]["ranges"] == [[{"subnet": "10.244.7.0/24"}]]


def test_a_log_that_grew_too_long_keeps_its_end(tmp_path: Path) -> None:
    log = tmp_path / "etcd.log"
    log.write_bytes(b"old " * 100 + b"the very end")
    bound(log, limit=100)
    assert log.read_bytes() == b""
    assert (tmp_path / "etcd.log.1").read_bytes().endswith(b"the very end")
    log.write_bytes(b"short")
    bound(log, limit=100)
    assert log.read_bytes() == b"short"
