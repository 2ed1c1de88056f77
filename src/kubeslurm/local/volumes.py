"""Dynamic volumes: a directory per claim, at the same path in every node, so that any node can mount any volume."""

import shutil
from pathlib import Path

from kubeslurm.local.addons import PROVISIONER
from kubeslurm.local.api import Api, ApiError, Mirror, Tree
from kubeslurm.local.nodeconfig import VOLUMES

CLAIMS = "/api/v1/persistentvolumeclaims"
VOLUMES_API = "/api/v1/persistentvolumes"


class Volumes:
    """Makes a volume for each claim of ours, removes it when it is released."""

    def __init__(self, api: Api, directory: Path) -> None:
        self.api = api
        self.directory = directory
        self.claims = Mirror(api, CLAIMS)
        self.volumes = Mirror(api, VOLUMES_API)

    async def provide(self) -> None:
        """One pass over the claims."""
        for claim in list(self.claims.objects.values()):
            if awaits_volume(claim):
                (self.directory / volume_name(claim)).mkdir(exist_ok=True)
                # Any user may write: containers that run as somebody else and set no fsGroup work too.
                (self.directory / volume_name(claim)).chmod(0o777)
                await self._create(volume_for(claim))

    async def clean(self) -> None:
        """One pass over the volumes."""
        for volume in list(self.volumes.objects.values()):
            if is_released(volume):
                name = volume["metadata"]["name"]
                shutil.rmtree(self.directory / name, ignore_errors=True)
                await self.api.call("DELETE", f"{VOLUMES_API}/{name}")

    async def _create(self, volume: Tree) -> None:
        try:
            await self.api.call("POST", VOLUMES_API, volume)
        except ApiError as error:
            if error.status != 409:
                raise


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


def volume_name(claim: Tree) -> str:
    return f"pvc-{claim['metadata']['uid']}"


def volume_for(claim: Tree) -> Tree:
    """A volume of type `local`, since that type honours fsGroup and a hostPath does not."""
    metadata, spec = claim["metadata"], claim["spec"]
    everywhere = {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": volume_name(claim),
            "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER},
        },
        "spec": {
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "accessModes": spec["accessModes"],
            "volumeMode": "Filesystem",
            "storageClassName": spec["storageClassName"],
            "persistentVolumeReclaimPolicy": "Delete",
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
            },
            "local": {"path": f"{VOLUMES}/{volume_name(claim)}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [everywhere]}]}},
        },
    }
