"""Drain deadlines: when and how the jobs on a draining worker are ended, as the owner of the NodeSet asked."""

from datetime import UTC, datetime
from enum import Enum, auto

import msgspec

from kubeslurm.api.duration import parse_duration
from kubeslurm.api.slinky.nodeset import Drain
from kubeslurm.decide.nodeset.slurm.drain import DrainReason
from kubeslurm.decide.nodeset.worker import Worker
from kubeslurm.slurm.rest.models import Job, Node


class ExpiredDrain(msgspec.Struct, frozen=True):
    """A Slurm node that has kept its jobs for more than `seconds` since `reason` was given."""

    node: str
    reason: str
    seconds: float


class Ending(Enum):
    """How a job is ended."""

    REQUEUE = auto()
    CANCEL = auto()


def expired_drain(
    worker: Worker, reason: DrainReason | None, drain: Drain | None, now: datetime
) -> ExpiredDrain | None:
    """A worker that must go and has kept its jobs past the deadline; never without a deadline in the spec.

    The time runs from when Slurm got the present reason: an earlier drain for another cause gave no notice.
    """
    node = worker.node
    if drain is None or drain.policy == "Wait" or not drain.deadline or node is None or reason is None:
        return None
    since, notice = node.reason_changed_at.value, parse_duration(drain.deadline)
    if not (node.drain and node.reason.startswith(reason.text) and node.busy) or not since:
        return None
    expired = datetime.fromtimestamp(since, UTC) + notice <= now
    return ExpiredDrain(worker.slurm_name, reason.text, notice.total_seconds()) if expired else None


def is_expired(drain: ExpiredDrain, node: Node | None, slurm_now: int) -> bool:
    """Whether the deadline has passed by slurmctld's clock too, for the node as it was just read.

    The plan was made with our own clock, which may have jumped.
    """
    if node is None or not node.drain or not node.reason.startswith(drain.reason):
        return False
    since = node.reason_changed_at.value
    return bool(since) and (since or 0) + drain.seconds <= slurm_now


def ending(job: Job, drain: Drain | None) -> Ending | None:
    """How the owner of the NodeSet wants the job ended; None when it cannot be ended so."""
    if drain is None or drain.policy != "Requeue":
        return Ending.CANCEL
    return Ending.REQUEUE if job.requeue else None


def ending_of_lost(job: Job) -> Ending:
    """How a job without processes is ended: it runs again if its user allows that."""
    return Ending.REQUEUE if job.requeue else Ending.CANCEL
