"""Dynamic volumes: a directory per claim, at the same path in every node, so that any node can mount any volume."""

import json

from kubeslurm.local import programs
from kubeslurm.local.programs import Tree

PROVISIONER = "kubeslurm.dev/local"


def awaits_volume(claim: Tree) -> bool:
    """Kubernetes names the provisioner on the claim once it is that one's turn."""
    annotations = claim["metadata"].get("annotations", {})
    return (
        claim["status"].get("phase") == "Pending"
        and annotations.get("volume.kubernetes.io/storage-provisioner") == PROVISIONER
        and not claim["spec"].get("volumeName")
        and "deletionTimestamp" not in claim["metadata"]
    )


def is_released(volume: Tree) -> bool:
    """Ours, no longer claimed, and not to be kept."""
    annotations = volume["metadata"].get("annotations", {})
    return (
        annotations.get("pv.kubernetes.io/provisioned-by") == PROVISIONER
        and volume["status"].get("phase") == "Released"
        and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete"
        and "deletionTimestamp" not in volume["metadata"]
    )


def volume_for(claim: Tree) -> Tree:
    """The volume that a claim asks for."""
    metadata, spec = claim["metadata"], claim["spec"]
    name = f"pvc-{metadata['uid']}"
    (volume,) = programs.trees(
        "volume.yaml",
        name=name,
        directory=f"{programs.VOLUMES}/{name}",
        storage=spec["resources"]["requests"]["storage"],
        modes=json.dumps(spec["accessModes"]),
        storage_class=spec["storageClassName"],
        namespace=metadata["namespace"],
        claim=metadata["name"],
        uid=metadata["uid"],
    )
    return volume
