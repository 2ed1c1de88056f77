"""Which objects of a watched kind are kept in memory: only those that the operator may need."""

from collections.abc import Callable
from typing import Any

from kubeslurm.api import names
from kubeslurm.api.kinds import POD, SECRET, SLURM_KINDS, Kind
from kubeslurm.api.views import Pod, Secret

DAEMONS = frozenset({names.SLURMCTLD, names.SLURMD, names.SLURMDBD, names.SLURMRESTD, names.LOGIN})
API_VERSIONS = frozenset(kind.api_version for kind in SLURM_KINDS)
HELM_RELEASE = "helm.sh/release.v1"  # up to a megabyte each, ten for each release


def of(kind: Kind[Any]) -> Callable[[Any], bool]:
    """Tells which objects of the kind are kept."""
    return _FILTERS.get(kind, lambda _obj: True)


def _is_ours(pod: Pod) -> bool:
    """Pods of workloads have our labels; those that the operator creates itself also have our owner."""
    owner = pod.metadata.controller
    made = owner is not None and owner.apiVersion in API_VERSIONS
    return made or pod.metadata.labels.get(names.LABEL_NAME) in DAEMONS


def _may_be_referred_to(secret: Secret) -> bool:
    return secret.type != HELM_RELEASE


_FILTERS: dict[Kind[Any], Callable[[Any], bool]] = {POD: _is_ours, SECRET: _may_be_referred_to}
