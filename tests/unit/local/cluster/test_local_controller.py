from typing import Any

import pytest

from kubeslurm.local.cluster.local_controller import (
    NOT_READY,
    PROVISIONER,
    is_released,
    is_schedulable,
    needs_volume,
    node_patch,
    node_ports,
    resource_patch,
    volume_for,
)
from kubeslurm.local.cluster.nodespec import NodeSpec, Taint

SPEC = NodeSpec("gpu-1", 1, {"tier": "fast"}, (Taint("gpu", "yes", "NoSchedule"),), {"nvidia.com/gpu": "8"})

CLAIM: dict[str, Any] = {
    "metadata": {
        "name": "data",
        "namespace": "apps",
        "uid": "u-1",
        "annotations": {"volume.kubernetes.io/storage-provisioner": PROVISIONER},
    },
    "spec": {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "shared",
        "resources": {"requests": {"storage": "5Gi"}},
    },
    "status": {"phase": "Pending"},
}
VOLUME: dict[str, Any] = {
    "metadata": {"name": "pvc-u-1", "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER}},
    "spec": {"persistentVolumeReclaimPolicy": "Delete"},
    "status": {"phase": "Released"},
}


def node(**parts: Any) -> dict[str, Any]:
    return {"metadata": {"name": "gpu-1"}, "spec": {}, "status": {}, **parts}


def test_missing_labels_and_taints_are_added_to_the_existing_ones() -> None:
    not_ready = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}
    patch = node_patch(SPEC, node(spec={"taints": [not_ready]}))
    assert patch["metadata"] == {"labels": {"tier": "fast"}}
    assert patch["spec"] == {"taints": [not_ready, {"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}


def test_a_node_that_matches_its_spec_is_not_patched() -> None:
    matching = node(
        metadata={"name": "gpu-1", "labels": {"tier": "fast", "other": "x"}},
        spec={"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]},
        status={"capacity": {"nvidia.com/gpu": "8", "cpu": "2"}, "allocatable": {"nvidia.com/gpu": "8"}},
    )
    assert node_patch(SPEC, matching) == {}
    assert resource_patch(SPEC, matching) == {}


def test_resources_that_a_kubelet_reset_to_zero_are_set_again() -> None:
    reset = node(status={"capacity": {"nvidia.com/gpu": "0"}, "allocatable": {"nvidia.com/gpu": "0"}})
    assert resource_patch(SPEC, reset)["status"]["capacity"] == {"nvidia.com/gpu": "8"}


def test_only_tcp_node_ports_are_forwarded() -> None:
    services: list[dict[str, Any]] = [
        {"spec": {"ports": [{"port": 80, "nodePort": 30080}, {"port": 53, "nodePort": 30053, "protocol": "UDP"}]}},
        {"spec": {"ports": [{"port": 443}]}},
        {"spec": {}},
    ]
    assert node_ports(services) == {30080}


@pytest.mark.parametrize(
    ("ready", "taint", "schedulable"),
    [("True", "kwok.x-k8s.io/node", True), ("True", NOT_READY, False), ("False", "kwok.x-k8s.io/node", False)],
)
def test_a_fake_node_is_schedulable_once_ready_and_without_the_not_ready_taint(
    ready: str, taint: str, schedulable: bool
) -> None:
    node = {
        "spec": {"taints": [{"key": taint, "effect": "NoSchedule"}]},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }
    assert is_schedulable(node) is schedulable


def test_a_node_without_conditions_is_not_schedulable() -> None:
    assert not is_schedulable({"spec": {}, "status": {}})


def with_changes(tree: dict[str, Any], **parts: dict[str, Any]) -> dict[str, Any]:
    return {key: {**value, **parts.get(key, {})} for key, value in tree.items()}


def test_a_pending_claim_of_our_provisioner_needs_a_volume() -> None:
    assert needs_volume(CLAIM)


@pytest.mark.parametrize(
    "claim",
    [
        with_changes(CLAIM, status={"phase": "Bound"}),
        with_changes(CLAIM, metadata={"annotations": {}}),
        with_changes(CLAIM, metadata={"annotations": {"volume.kubernetes.io/storage-provisioner": "other"}}),
        with_changes(CLAIM, metadata={"deletionTimestamp": "now"}),
        with_changes(CLAIM, spec={"volumeName": "chosen"}),
    ],
)
def test_other_claims_need_no_volume(claim: dict[str, Any]) -> None:
    assert not needs_volume(claim)


def test_a_volume_is_bound_to_its_claim_and_has_a_directory() -> None:
    volume = volume_for(CLAIM)
    assert volume["spec"]["claimRef"]["uid"] == "u-1"
    assert volume["spec"]["accessModes"] == ["ReadWriteMany"]
    assert volume["spec"]["capacity"] == {"storage": "5Gi"}
    assert volume["spec"]["local"]["path"].endswith("/pvc-u-1")


def test_only_released_volumes_of_our_provisioner_are_deleted() -> None:
    assert is_released(VOLUME)
    assert not is_released(with_changes(VOLUME, status={"phase": "Bound"}))
    assert not is_released(with_changes(VOLUME, spec={"persistentVolumeReclaimPolicy": "Retain"}))
    assert not is_released(with_changes(VOLUME, metadata={"annotations": {}}))
    assert not is_released(with_changes(VOLUME, metadata={"deletionTimestamp": "now"}))
