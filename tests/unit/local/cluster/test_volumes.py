from typing import Any

import pytest

from kubeslurm.local.cluster.keeper import PROVISIONER, awaits_volume, is_released, volume_for

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


def with_changes(tree: dict[str, Any], **parts: dict[str, Any]) -> dict[str, Any]:
    return {key: {**value, **parts.get(key, {})} for key, value in tree.items()}


def test_a_pending_claim_of_ours_awaits_a_volume() -> None:
    assert awaits_volume(CLAIM)


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
def test_other_claims_are_left_alone(claim: dict[str, Any]) -> None:
    assert not awaits_volume(claim)


def test_a_volume_is_tied_to_its_claim_and_mountable_everywhere() -> None:
    volume = volume_for(CLAIM)
    assert volume["spec"]["claimRef"]["uid"] == "u-1"
    assert volume["spec"]["accessModes"] == ["ReadWriteMany"]
    assert volume["spec"]["capacity"] == {"storage": "5Gi"}
    assert volume["spec"]["local"]["path"].endswith("/pvc-u-1")


def test_only_released_volumes_of_ours_are_removed() -> None:
    assert is_released(VOLUME)
    assert not is_released(with_changes(VOLUME, status={"phase": "Bound"}))
    assert not is_released(with_changes(VOLUME, spec={"persistentVolumeReclaimPolicy": "Retain"}))
    assert not is_released(with_changes(VOLUME, metadata={"annotations": {}}))
    assert not is_released(with_changes(VOLUME, metadata={"deletionTimestamp": "now"}))
