"""Workers that started with something that has changed since, and that they would never read again."""

from kubeslurm.api import names
from kubeslurm.api.kinds import CONTROLLER
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.build.worker.pod import EMPTY_HASH, Stamps
from kubeslurm.decide.nodeset.facts import Worker


def is_stale(nodeset: NodeSet, worker: Worker, today: Stamps) -> bool:
    """Whether the pod was started with other stamps; pods that a predecessor made are not restarted over a digest."""
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
