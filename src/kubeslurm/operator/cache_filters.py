"""What of a watched kind is worth memory: a namespace, let alone a cluster, is full of what is none of our business."""

from collections.abc import Callable
from typing import Any

from kubeslurm.api import names
from kubeslurm.api.kinds import POD, SECRET, SLURM_KINDS, Kind
from kubeslurm.api.views import Pod, Secret

DAEMONS = frozenset({names.SLURMCTLD, names.SLURMD, names.SLURMDBD, names.SLURMRESTD, names.LOGIN})
API_VERSIONS = frozenset(kind.api_version for kind in SLURM_KINDS)
HELM_RELEASE = "helm.sh/release.v1"  # up to a megabyte each, ten for each release


def of(kind: Kind[Any]) -> Callable[[Any], bool]:
    """Tells which objects of the kind are held."""
    return _HELD.get(kind, lambda _obj: True)


def _is_ours(pod: Pod) -> bool:
    """Pods of workloads are known by their labels; those that we make ourselves also by their owner."""
    owner = pod.metadata.controller
    made = owner is not None and owner.apiVersion in API_VERSIONS
    return made or pod.metadata.labels.get(names.LABEL_NAME) in DAEMONS


def _may_be_referred_to(secret: Secret) -> bool:
    return secret.type != HELM_RELEASE


_HELD: dict[Kind[Any], Callable[[Any], bool]] = {POD: _is_ours, SECRET: _may_be_referred_to}
