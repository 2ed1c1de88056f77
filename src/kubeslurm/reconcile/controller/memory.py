"""What this process remembers about a Controller; a new process starts without it."""

import msgspec

from kubeslurm.api.meta import Tree
from kubeslurm.decide.config.facts import Configuration
from kubeslurm.decide.config.running import Running
from kubeslurm.slurm.errors import SlurmError


class DeliveryRecord(msgspec.Struct):
    """The delivery of one configuration to one pod; times are those of the reconciler's clock."""

    digest: str = ""
    pod_uid: str = ""
    refreshed_at: float | None = None
    reconfigured_at: float | None = None
    read_at: float | None = None  # slurmctld was first seen to have read it
    attempts: int = 0
    before: Running | None = None
    error: SlurmError | TimeoutError | None = None  # of the last reconfigure


class Memory(msgspec.Struct):
    """All that is remembered of one Controller."""

    accepted: Configuration | None = None  # what the ConfigMap held before somebody edited it
    inconclusive_since: float | None = None  # a trial could not run
    delivery: DeliveryRecord = msgspec.field(default_factory=DeliveryRecord)
    missing_node: tuple[str, float] | None = None  # uid of the pod whose node is missing, and since when
    version: str = ""
    version_of: str = ""  # the container that said so
    service_monitor: Tree | None = None
    monitor_applied: bool = False

    def delivery_of(self, digest: str, pod_uid: str) -> DeliveryRecord:
        """The record of this delivery; that of another one is dropped."""
        if (self.delivery.digest, self.delivery.pod_uid) != (digest, pod_uid):
            self.delivery = DeliveryRecord(digest=digest, pod_uid=pod_uid)
        return self.delivery
