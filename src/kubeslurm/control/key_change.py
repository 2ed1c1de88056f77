"""A slurm.key that was changed and has not reached slurmctld: all daemons of the cluster wait for that."""

from kubeslurm.api import names
from kubeslurm.api.kinds import CONTROLLER, STATEFULSET
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.views import StatefulSet
from kubeslurm.build.common import digest
from kubeslurm.control import references
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches


def is_pending(caches: Caches, controller: Controller) -> bool:
    """Whether slurmctld was last given another slurm.key than its Secret holds now."""
    live = caches.store(STATEFULSET).get(Key(controller.namespace, names.controller(controller.name)))
    data = references.data_of(references.secret(caches, controller.namespace, controller.spec.slurmKeyRef))
    return bool(data) and (given := given_hash(live)) is not None and given != digest.of_values(data)


def is_pending_in(caches: Caches, namespace: str, secret: str) -> bool:
    """Whether a cluster waits to take over what this Secret holds."""
    return any(
        is_pending(caches, each)
        for each in caches.store(CONTROLLER)
        if each.namespace == namespace and each.spec.slurmKeyRef is not None and each.spec.slurmKeyRef.name == secret
    )


def given_hash(live: StatefulSet | None) -> str | None:
    """The hash of the slurm.key that slurmctld was given; None when that is not known."""
    if live is None:
        return None
    if recorded := live.metadata.annotations.get(names.SLURM_KEY_HASH):
        return recorded
    # The template of another operator may have a hash of another form.
    template = live.spec.get("template", {}).get("metadata", {}).get("annotations") or {}
    return template.get(names.SLURM_KEY_HASH) if names.RESTART_HASH in template else None
