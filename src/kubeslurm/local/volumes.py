"""Dynamic volumes: a directory per claim, at the same path in every node, so that any node can mount any volume."""

import json
import shutil
from pathlib import Path

from kubeslurm.local import programs
from kubeslurm.local.api import Api, ApiError, Mirror
from kubeslurm.local.programs import Tree

PROVISIONER = "kubeslurm.dev/local"
VOLUMES_API = "/api/v1/persistentvolumes"


class Volumes:
    """Makes a volume for each claim of ours, removes it when it is released."""

    def __init__(self, api: Api, directory: Path) -> None:
        self.api = api
        self.directory = directory
        self.claims = Mirror(api, "/api/v1/persistentvolumeclaims")
        self.volumes = Mirror(api, VOLUMES_API)

    async def provide(self) -> None:
        """One pass over the claims."""
        for claim in filter(awaits_volume, list(self.claims.objects.values())):
            volume = volume_for(claim)
            directory = self.directory / volume["metadata"]["name"]
            directory.mkdir(exist_ok=True)
            directory.chmod(0o777)  # any user may write: containers of any user work without an fsGroup too
            try:
                await self.api.call("POST", VOLUMES_API, volume)
            except ApiError as error:
                if error.status != 409:
                    raise

    async def clean(self) -> None:
        """One pass over the volumes."""
        for volume in filter(is_released, list(self.volumes.objects.values())):
            name = volume["metadata"]["name"]
            shutil.rmtree(self.directory / name, ignore_errors=True)
            await self.api.call("DELETE", f"{VOLUMES_API}/{name}")


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
