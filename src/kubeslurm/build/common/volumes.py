"""Volumes and their mounts."""

from collections.abc import Iterable

from kubeslurm.api import names
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.fragments import SecretKeySelector

# Read as root, or as the user that fsGroup names: keys must not be readable for anyone else.
PRIVATE = 0o600


def memory(name: str) -> Tree:
    """A volume in memory."""
    return {"name": name, "emptyDir": {"medium": "Memory"}}


def projected(name: str, sources: Iterable[Tree], mode: int = PRIVATE) -> Tree:
    """Several ConfigMaps and Secrets in one directory."""
    return {"name": name, "projected": {"defaultMode": mode, "sources": list(sources)}}


def secret_file(secret: str, key: str, path: str) -> Tree:
    """One key of a Secret as a file."""
    return {"secret": {"name": secret, "items": [{"key": key, "path": path}]}}


def configmap_file(configmap: str, key: str, path: str) -> Tree:
    """One key of a ConfigMap as a file."""
    return {"configMap": {"name": configmap, "items": [{"key": key, "path": path}]}}


def key_files(slurm_key: SecretKeySelector | None, jwt_key: SecretKeySelector | None = None) -> list[Tree]:
    """slurm.key and jwt.key as files; one without a reference is left out."""
    refs = ((slurm_key, names.SLURM_KEY_FILE), (jwt_key, names.JWT_KEY_FILE))
    return [secret_file(ref.name, ref.key, file) for ref, file in refs if ref is not None]


def etc_mount() -> Tree:
    """/etc/slurm, which no daemon writes to."""
    return {"name": names.VOLUME_ETC, "mountPath": names.ETC_DIR, "readOnly": True}


def file_mount(volume: str, path: str) -> Tree:
    """A single file in a directory that belongs to the image; it is never refreshed in a running pod."""
    return {"name": volume, "mountPath": path, "subPath": path.rpartition("/")[2], "readOnly": True}
