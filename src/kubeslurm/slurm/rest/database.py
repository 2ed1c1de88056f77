"""What is read from slurmdbd, through the same slurmrestd as slurmctld."""

from kubeslurm.slurm.rest import bodies
from kubeslurm.slurm.rest.models import Association
from kubeslurm.slurm.rest.transport import SLURMDB, Transport


class SlurmdbClient:
    """Reads accounting data; raises NotServed where slurmrestd runs without its slurmdbd plugin."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    async def associations(self, user: str, cluster: str) -> tuple[Association, ...]:
        """The accounts that a user may use on a cluster, each with its QoS."""
        params = {"user": user, "cluster": cluster}
        reply = await self.transport.call("GET", "associations/", params=params, api=SLURMDB)
        return bodies.read(reply, bodies.AssociationsBody).associations
