"""What workers read once, at their start, in its present form."""

import msgspec

from kubeslurm.api import names
from kubeslurm.api.kinds import CONTROLLER
from kubeslurm.api.slinky.fragments import SecretKeySelector
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.build.common import digest
from kubeslurm.build.worker import slurmd_conf
from kubeslurm.build.worker.pod import EMPTY_HASH, Stamps, conf_server
from kubeslurm.control import references
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches


def of(caches: Caches, nodeset: NodeSet) -> Stamps:
    """Digests of the slurm.key, the conf-server and the ssh files that a worker would get today."""
    controller, ssh = caches.store(CONTROLLER).get(Key(*nodeset.controller_key)), nodeset.spec.ssh
    stamps = Stamps()
    if controller is not None:
        key = _bytes(caches, nodeset.namespace, controller.spec.slurmKeyRef)
        stamps = Stamps(
            slurm_key=digest.of_values({names.SLURM_KEY_FILE: key}) if key else "",
            restart=digest.of_files({"conf-server": conf_server(controller)}),
        )
    if ssh is None or not ssh.enabled:
        return stamps
    users = _bytes(caches, nodeset.namespace, ssh.sssdConfRef)
    return msgspec.structs.replace(
        stamps,
        sshd=digest.of_values({"sshd_config": slurmd_conf.sshd_config(ssh.extraSshdConfig).encode()}),
        sssd=digest.of_values({"sssd.conf": users}) if users else EMPTY_HASH,
    )


def _bytes(caches: Caches, namespace: str, ref: SecretKeySelector | None) -> bytes:
    return references.key_bytes(references.secret(caches, namespace, ref), ref) or b""
