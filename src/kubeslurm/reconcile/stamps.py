"""What workers read once, at their start: who has it in the present form, and who must be replaced to get it."""

import msgspec

from kubeslurm.api.fragments import SecretKeySelector
from kubeslurm.api.kinds import CONTROLLER
from kubeslurm.api.nodeset import NodeSet
from kubeslurm.build import digest, names, slurmd_conf
from kubeslurm.build.worker import EMPTY_HASH, Stamps, conf_server
from kubeslurm.decide.facts import Worker
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.reconcile import references


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


def differ(nodeset: NodeSet, worker: Worker, today: Stamps) -> bool:
    """Whether the pod was started with other ones; pods that a predecessor made are not restarted over a digest."""
    have = worker.pod.metadata.annotations
    kept = ((names.SLURM_KEY_HASH, today.slurm_key), (names.RESTART_HASH, today.restart))
    if names.RESTART_HASH in have and any(wanted and have.get(name, wanted) != wanted for name, wanted in kept):
        return True
    if not (nodeset.spec.ssh and nodeset.spec.ssh.enabled):
        return False
    if not any(owner.kind == CONTROLLER.kind for owner in worker.pod.metadata.ownerReferences):
        return False
    # Without today's digest the Secret is missing: wait for it.
    sssd = today.sssd if today.sssd != EMPTY_HASH else have.get(names.SSSD_CONF_HASH)
    return (have.get(names.SSHD_CONF_HASH), have.get(names.SSSD_CONF_HASH)) != (today.sshd, sssd)


def _bytes(caches: Caches, namespace: str, ref: SecretKeySelector | None) -> bytes:
    return references.key_bytes(references.secret(caches, namespace, ref), ref) or b""
