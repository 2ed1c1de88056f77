"""What sshd of a LoginSet reads: its host keys, its configuration, and the keys of root."""

import base64
from collections.abc import Mapping

from kubeslurm.api import labels, names
from kubeslurm.api.kinds import CONFIGMAP, SECRET
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.loginset import LoginSet
from kubeslurm.build.common.conf_text import section, sshd_config
from kubeslurm.build.common.metadata import child_metadata, inherited, object_tree
from kubeslurm.build.common.volumes import PRIVATE, file_mount, projected

SSHD_CONFIG = "sshd_config"
AUTHORIZED_KEYS = "authorized_keys"
# File names in the Secret and in /etc/ssh; clients remember the host by these keys.
HOST_KEYS = ("ssh_host_rsa_key", "ssh_host_ed25519_key", "ssh_host_ecdsa_key")


def host_keys(loginset: LoginSet, files: Mapping[str, bytes]) -> Tree:
    """The Secret with the host keys: made once, and never changed by us."""
    return object_tree(
        SECRET,
        _metadata(loginset, names.login_host_keys(loginset.name)),
        type="Opaque",
        immutable=True,
        data={name: base64.b64encode(content).decode() for name, content in files.items()},
    )


def config(loginset: LoginSet) -> Tree:
    """The ConfigMap with sshd_config and root's authorized_keys."""
    metadata = _metadata(loginset, names.login_ssh_config(loginset.name))
    return object_tree(CONFIGMAP, metadata, data=config_files(loginset))


def config_files(loginset: LoginSet) -> dict[str, str]:
    """Both files by name."""
    spec = loginset.spec
    return {
        AUTHORIZED_KEYS: section("SLINKY", spec.rootSshAuthorizedKeys),
        SSHD_CONFIG: sshd_config("X11Forwarding yes", "Subsystem sftp internal-sftp", extra=spec.extraSshdConfig),
    }


def host_key_volume(loginset: LoginSet) -> Tree:
    """Private keys that only root may read, beside public ones that anybody may."""
    items = [
        {"key": file, "path": file, "mode": mode}
        for key in HOST_KEYS
        for file, mode in ((key, PRIVATE), (f"{key}.pub", 0o644))
    ]
    source = {"secret": {"name": names.login_host_keys(loginset.name), "items": items}}
    return projected(names.VOLUME_SSH_HOST_KEYS, [source])


def config_volume(loginset: LoginSet) -> Tree:
    items = [{"key": file, "path": file, "mode": PRIVATE} for file in (SSHD_CONFIG, AUTHORIZED_KEYS)]
    source = {"configMap": {"name": names.login_ssh_config(loginset.name), "items": items}}
    return projected(names.VOLUME_SSH_CONFIG, [source])


def mounts() -> list[Tree]:
    """Single files, because the rest of /etc/ssh is the image's."""
    keys = [file for key in HOST_KEYS for file in (key, f"{key}.pub")]
    return [
        *(file_mount(names.VOLUME_SSH_HOST_KEYS, f"/etc/ssh/{file}") for file in keys),
        file_mount(names.VOLUME_SSH_CONFIG, f"/etc/ssh/{SSHD_CONFIG}"),
        file_mount(names.VOLUME_SSH_CONFIG, f"/root/.ssh/{AUTHORIZED_KEYS}"),
    ]


def _metadata(loginset: LoginSet, name: str) -> Tree:
    return child_metadata(loginset, name, inherited(loginset), {"labels": labels.login(loginset.name)})
