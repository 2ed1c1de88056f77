"""Deletes the reservation of a ScheduledUpdate that another operator has left."""

from kubeslurm.api import names
from kubeslurm.api.kinds import NODESET
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.control.fan_out import Error
from kubeslurm.decide.nodeset.slurm import reservation
from kubeslurm.engine.key import Key
from kubeslurm.kube.client import Kube
from kubeslurm.kube.errors import ApiError
from kubeslurm.slurm.clusters import SlurmCluster
from kubeslurm.slurm.errors import SlurmError


async def clean_up(kube: Kube, slurm: SlurmCluster, nodeset: NodeSet) -> tuple[Error, ...]:
    """First the reservation, then the finalizer that stands for it."""
    if not reservation.is_left_over(nodeset):
        return ()
    try:
        await slurm.client.delete_reservation(names.update_reservation(nodeset.name))
        current = await kube.get(NODESET, Key(*nodeset.key))
        if current is not None:
            await kube.remove_finalizer(NODESET, current, names.RESERVATION_FINALIZER)
    except (ApiError, SlurmError) as error:
        return (error,)
    return ()
