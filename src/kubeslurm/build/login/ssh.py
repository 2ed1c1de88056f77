"""What sshd of a LoginSet reads: its host keys, its configuration, and the keys of root."""

import base64
from collections.abc import Mapping

from kubeslurm.api import labels, names
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.loginset import LoginSet
from kubeslurm.build.common import parts
from kubeslurm.build.common.merge import merge_metadata

KIND = "LoginSet"
SSHD_CONFIG = "sshd_config"
AUTHORIZED_KEYS = "authorized_keys"
# File names in the Secret and in /etc/ssh; clients remember the host by these keys.
HOST_KEYS = ("ssh_host_rsa_key", "ssh_host_ed25519_key", "ssh_host_ecdsa_key")


def host_keys(loginset: LoginSet, files: Mapping[str, bytes]) -> Tree:
    """The Secret with the host keys: made once, and never changed by us."""
    return parts.object_tree(
        "v1",
        "Secret",
        parts.metadata(names.login_host_keys(loginset.name), loginset.metadata, KIND, _layers(loginset)),
        type="Opaque",
        immutable=True,
        data={name: base64.b64encode(content).decode() for name, content in files.items()},
    )


def config(loginset: LoginSet) -> Tree:
    """The ConfigMap with sshd_config and root's authorized_keys."""
    return parts.object_tree(
        "v1",
        "ConfigMap",
        parts.metadata(names.login_ssh_config(loginset.name), loginset.metadata, KIND, _layers(loginset)),
        data=config_files(loginset),
    )


def config_files(loginset: LoginSet) -> dict[str, str]:
    """Both files in the form that existing clusters have."""
    spec = loginset.spec
    sshd = (
        "#",
        "### GENERAL ###",
        "Include /etc/ssh/sshd_config.d/*.conf",
        "UsePAM yes",
        "X11Forwarding yes",
        "Subsystem sftp internal-sftp",
        "#",
        "### EXTRA CONFIG ###",
        spec.extraSshdConfig,
    )
    keys = ("#", "### SLINKY ###", spec.rootSshAuthorizedKeys)
    return {AUTHORIZED_KEYS: "\n".join(keys) + "\n", SSHD_CONFIG: "\n".join(sshd) + "\n"}


def host_key_volume(loginset: LoginSet) -> Tree:
    """Private keys that only root may read, beside public ones that anybody may."""
    items = [
        {"key": file, "path": file, "mode": mode}
        for key in HOST_KEYS
        for file, mode in ((key, 0o600), (f"{key}.pub", 0o644))
    ]
    source = {"secret": {"name": names.login_host_keys(loginset.name), "items": items}}
    return parts.projected(names.VOLUME_SSH_HOST_KEYS, 0o600, [source])


def config_volume(loginset: LoginSet) -> Tree:
    items = [{"key": file, "path": file, "mode": 0o600} for file in (SSHD_CONFIG, AUTHORIZED_KEYS)]
    source = {"configMap": {"name": names.login_ssh_config(loginset.name), "items": items}}
    return parts.projected(names.VOLUME_SSH_CONFIG, 0o600, [source])


def mounts() -> list[Tree]:
    """Single files, because the rest of /etc/ssh is the image's."""
    keys = [file for key in HOST_KEYS for file in (key, f"{key}.pub")]
    return [
        *(_file(names.VOLUME_SSH_HOST_KEYS, f"/etc/ssh/{file}", file) for file in keys),
        _file(names.VOLUME_SSH_CONFIG, f"/etc/ssh/{SSHD_CONFIG}", SSHD_CONFIG),
        _file(names.VOLUME_SSH_CONFIG, f"/root/.ssh/{AUTHORIZED_KEYS}", AUTHORIZED_KEYS),
    ]


def _file(volume: str, path: str, file: str) -> Tree:
    return {"name": volume, "mountPath": path, "subPath": file, "readOnly": True}


def _layers(loginset: LoginSet) -> Tree:
    return merge_metadata(parts.inherited(loginset.metadata), {"labels": labels.login(loginset.name)})
