"""Why a worker is cordoned, and what the cordon annotations of its pod must become."""

from enum import StrEnum

import msgspec

from kubeslurm.api import names
from kubeslurm.decide.nodeset.slurm.reasons import is_own
from kubeslurm.decide.nodeset.worker import ALSO_USER, Worker

# What the reference operator wrote when the cordon was its own; a user's own cordon reads "was cordoned" and no more.
_OPERATORS_OWN = ("pending termination", "must be cordoned")


class Cause(StrEnum):
    """Why a worker must take no new jobs; the values are written to an annotation of the pod and must not change."""

    SCALE_IN = "scale-in"
    UPDATE = "update"
    DELETION = "deletion"  # of the NodeSet
    PLACEMENT = "placement"  # the pod does not belong on its Kubernetes node
    NODE = "node"  # its Kubernetes node is cordoned, or has a taint or a condition that was chosen to drain
    USER = ""  # a user cordoned the pod; never written


class Cordon(msgspec.Struct, frozen=True):
    """Whether the pod is cordoned, and the operator's cause (with the user's cordon noted); empty: none of ours."""

    cordoned: bool
    by: str = ""


def cordon(worker: Worker, cause: Cause | None, *, slurm_known: bool) -> Cordon | None:
    """The cordon that the pod must have, given the cause of its drain; None leaves it as it is.

    A cordon of ours stays until Slurm shows no drain of ours any more: it proves whose drain that is.
    """
    if cause is None and not worker.cordoned:
        return None
    if cause is Cause.USER:
        return Cordon(True)  # ours is over, the user's own cordon remains
    if cause is not None:
        return Cordon(True, cause + (ALSO_USER if worker.user_cordoned else ""))
    if slurm_known and is_drain_lifted(worker):
        return Cordon(worker.user_cordoned)
    if is_left_by_operator(worker):
        return Cordon(True, Cause.NODE)  # ours from now on, so that it can be lifted
    return None


def is_drain_lifted(worker: Worker) -> bool:
    """Whether Slurm shows no drain of ours any more."""
    node = worker.node
    return node is None or not node.drain or not is_own(node)


def is_left_by_operator(worker: Worker) -> bool:
    """Whether a cordon without a cause stems from the reference operator, which wrote no cause for its own cordons."""
    node = worker.node
    return (
        names.POD_CORDON_BY not in worker.pod.metadata.annotations
        and node is not None
        and node.ours
        and any(text in node.reason for text in _OPERATORS_OWN)
    )
