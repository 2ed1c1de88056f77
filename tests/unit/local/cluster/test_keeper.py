from typing import Any

import pytest

from kubeslurm.local.cluster import programs
from kubeslurm.local.cluster.api import path_of
from kubeslurm.local.cluster.keeper import NOT_READY, node_patch, node_ports, resource_patch, takes_pods
from kubeslurm.local.cluster.nodespec import NodeSpec, Taint

SPEC = NodeSpec("gpu-1", 1, {"tier": "fast"}, (Taint("gpu", "yes", "NoSchedule"),), {"nvidia.com/gpu": "8"})


def node(**parts: Any) -> dict[str, Any]:
    return {"metadata": {"name": "gpu-1"}, "spec": {}, "status": {}, **parts}


def test_missing_labels_and_taints_are_added_next_to_what_is_there() -> None:
    pressure = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}
    patch = node_patch(SPEC, node(spec={"taints": [pressure]}))
    assert patch["metadata"] == {"labels": {"tier": "fast"}}
    assert patch["spec"] == {"taints": [pressure, {"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}


def test_a_node_that_has_it_all_is_left_alone() -> None:
    right = node(
        metadata={"name": "gpu-1", "labels": {"tier": "fast", "other": "x"}},
        spec={"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]},
        status={"capacity": {"nvidia.com/gpu": "8", "cpu": "2"}, "allocatable": {"nvidia.com/gpu": "8"}},
    )
    assert node_patch(SPEC, right) == {}
    assert resource_patch(SPEC, right) == {}


def test_resources_that_a_kubelet_set_to_zero_come_back() -> None:
    reset = node(status={"capacity": {"nvidia.com/gpu": "0"}, "allocatable": {"nvidia.com/gpu": "0"}})
    assert resource_patch(SPEC, reset)["status"]["capacity"] == {"nvidia.com/gpu": "8"}


def test_exactly_one_storage_class_is_the_default() -> None:
    classes = [tree for tree in programs.trees("addons.yaml") if tree["kind"] == "StorageClass"]
    default = "storageclass.kubernetes.io/is-default-class"
    assert [c["metadata"]["name"] for c in classes if c["metadata"]["annotations"][default] == "true"] == ["standard"]


@pytest.mark.parametrize(
    ("version", "kind", "metadata", "path"),
    [
        ("v1", "Service", {"name": "a", "namespace": "n"}, "/api/v1/namespaces/n/services/a"),
        ("storage.k8s.io/v1", "StorageClass", {"name": "a"}, "/apis/storage.k8s.io/v1/storageclasses/a"),
    ],
)
def test_objects_are_applied_where_they_are_served(version: str, kind: str, metadata: Any, path: str) -> None:
    assert path_of({"apiVersion": version, "kind": kind, "metadata": metadata}) == path


def test_only_tcp_node_ports_are_opened() -> None:
    services: list[dict[str, Any]] = [
        {"spec": {"ports": [{"port": 80, "nodePort": 30080}, {"port": 53, "nodePort": 30053, "protocol": "UDP"}]}},
        {"spec": {"ports": [{"port": 443}]}},
        {"spec": {}},
    ]
    assert node_ports(services) == {30080}


@pytest.mark.parametrize(
    ("ready", "taint", "takes"),
    [("True", "kwok.x-k8s.io/node", True), ("True", NOT_READY, False), ("False", "kwok.x-k8s.io/node", False)],
)
def test_a_new_node_counts_once_pods_can_be_placed_there(ready: str, taint: str, takes: bool) -> None:
    node = {
        "spec": {"taints": [{"key": taint, "effect": "NoSchedule"}]},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }
    assert takes_pods(node) is takes


def test_a_node_that_has_said_nothing_takes_no_pods() -> None:
    assert not takes_pods({"spec": {}, "status": {}})
