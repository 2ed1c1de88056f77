"""What sshd of workers reads: sshd_config in a ConfigMap, and the user's sssd.conf."""

from kubeslurm.api import labels, names
from kubeslurm.api.kinds import CONFIGMAP
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.nodeset import NodeSet, Ssh
from kubeslurm.build.common.conf_text import sshd_config
from kubeslurm.build.common.metadata import child_metadata, inherited, object_tree
from kubeslurm.build.common.volumes import configmap_file, file_mount, projected, secret_file

SSHD_CONFIG = "sshd_config"
SSSD_CONF = "sssd.conf"


def enabled(nodeset: NodeSet) -> Ssh | None:
    """The settings of ssh, if workers run sshd."""
    return nodeset.spec.ssh if nodeset.spec.ssh and nodeset.spec.ssh.enabled else None


def config_files(ssh: Ssh) -> dict[str, str]:
    """The files of the ConfigMap by name."""
    settings = ("Subsystem sftp internal-sftp", "AuthenticationMethods publickey password")
    return {SSHD_CONFIG: sshd_config(*settings, extra=ssh.extraSshdConfig)}


def config(nodeset: NodeSet) -> Tree | None:
    """The ConfigMap with sshd_config, if workers run sshd."""
    ssh = enabled(nodeset)
    if ssh is None:
        return None
    own = {"labels": labels.labels(names.SLURMD, nodeset.name, names.WORKER)}
    metadata = child_metadata(nodeset, names.login_ssh_config(nodeset.name), inherited(nodeset), own)
    return object_tree(CONFIGMAP, metadata, data=config_files(ssh))


def volumes(nodeset: NodeSet, ssh: Ssh) -> list[Tree]:
    config = configmap_file(names.login_ssh_config(nodeset.name), SSHD_CONFIG, SSHD_CONFIG)
    users = secret_file(ssh.sssdConfRef.name, ssh.sssdConfRef.key, SSSD_CONF)
    return [projected(names.VOLUME_SSH_CONFIG, [config]), projected(names.VOLUME_SSSD, [users])]


def mounts() -> list[Tree]:
    return [
        file_mount(names.VOLUME_SSH_CONFIG, f"/etc/ssh/{SSHD_CONFIG}"),
        file_mount(names.VOLUME_SSSD, f"/etc/sssd/{SSSD_CONF}"),
    ]
