"""The reservation that another operator made for a ScheduledUpdate, and its hold on the NodeSet."""

from kubeslurm.api import names
from kubeslurm.api.slinky.nodeset import NodeSet


def is_held(nodeset: NodeSet) -> bool:
    """Whether the NodeSet cannot go before the reservation is deleted."""
    return names.RESERVATION_FINALIZER in nodeset.metadata.finalizers


def is_left_over(nodeset: NodeSet) -> bool:
    """Whether nobody wants the reservation any more."""
    wanted = nodeset.spec.update_type == "ScheduledUpdate" and nodeset.spec.replicas > 0 and not nodeset.deleting
    return is_held(nodeset) and not wanted
