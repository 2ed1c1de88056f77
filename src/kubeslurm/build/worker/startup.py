"""Hashes of what a worker reads only when it starts, as annotations of its pod."""

import hashlib

from kubeslurm.api import names
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.build.common import digest
from kubeslurm.build.controller.service import conf_server
from kubeslurm.build.worker import ssh

# What existing pods have where there is no file.
NO_FILE = hashlib.sha256(b"").hexdigest()


def hashes(controller: Controller | None, nodeset: NodeSet, slurm_key: bytes, sssd_conf: bytes) -> dict[str, str]:
    """Annotation -> hash of what a worker would read today; a file that is missing or not known has none."""
    found: dict[str, str] = {}
    if settings := ssh.enabled(nodeset):
        files = {name: text.encode() for name, text in ssh.config_files(settings).items()}
        found[names.SSHD_CONF_HASH] = digest.of_values(files)
        if sssd_conf:
            found[names.SSSD_CONF_HASH] = digest.of_values({ssh.SSSD_CONF: sssd_conf})
    if controller is not None:
        if slurm_key:
            found[names.SLURM_KEY_HASH] = digest.of_values({names.SLURM_KEY_FILE: slurm_key})
        found[names.RESTART_HASH] = digest.of_files({"conf-server": conf_server(controller)})
    return found
