"""Workers that started with files that have changed since; a running worker never reads them again."""

from collections.abc import Mapping

from kubeslurm.api import names
from kubeslurm.api.kinds import CONTROLLER
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.decide.nodeset.facts import Worker


def is_stale(nodeset: NodeSet, worker: Worker, hashes: Mapping[str, str]) -> bool:
    """Whether the pod has other hashes than `hashes` (annotation -> hash); one that is not known is not compared.

    Pods of another operator are not replaced because of a hash.
    """
    have = worker.pod.metadata.annotations
    if names.RESTART_HASH in have:
        known = [name for name in (names.SLURM_KEY_HASH, names.RESTART_HASH) if name in hashes and name in have]
        if any(have[name] != hashes[name] for name in known):
            return True
    if not (nodeset.spec.ssh and nodeset.spec.ssh.enabled):
        return False
    if not any(owner.kind == CONTROLLER.kind for owner in worker.pod.metadata.ownerReferences):
        return False
    # Without a hash the Secret with sssd.conf is missing: wait for it.
    ssh = [name for name in (names.SSHD_CONF_HASH, names.SSSD_CONF_HASH) if name in hashes]
    return any(have.get(name) != hashes[name] for name in ssh)
