"""Jobs are ended only past a deadline that the owner of the NodeSet set."""

from datetime import timedelta

from kubeslurm.api.slinky.nodeset import Drain
from kubeslurm.decide.nodeset.cordon import Cause
from kubeslurm.decide.nodeset.slurm.deadline import (
    Ending,
    ExpiredDrain,
    ending,
    ending_of_lost,
    expired_drain,
    is_expired,
)
from kubeslurm.decide.nodeset.slurm.drain import DrainReason
from kubeslurm.decide.nodeset.worker import Worker
from kubeslurm.slurm.rest.models import Job
from tests.support.workers import NOW, at, slurm_node, worker

OURS = "slurm-operator: Pod (slurm/gpu-1) is pending termination for scale-in"
CORDONED = "slurm-operator: Node (host-1) was cordoned, Pod (slurm/gpu-1) must be cordoned"
SCALE_IN = DrainReason(Cause.SCALE_IN, OURS)


def drained_since(hours: float, *state: str) -> Worker:
    return worker(1, *state, reason=OURS, slurm={"reason_changed_at": at(NOW - timedelta(hours=hours))})


def test_jobs_are_never_ended_without_a_drain() -> None:
    for drain in (None, Drain(), Drain(policy="Wait", deadline="1h")):
        assert not expired_drain(drained_since(99, "MIXED", "DRAIN"), SCALE_IN, drain, NOW)


def test_jobs_are_ended_after_the_deadline_that_the_owner_set() -> None:
    drain = Drain(policy="Requeue", deadline="4h")
    assert expired_drain(drained_since(5, "MIXED", "DRAIN"), SCALE_IN, drain, NOW) == ExpiredDrain(
        "gpu-1", OURS, 4 * 3600
    )
    assert not expired_drain(drained_since(3, "MIXED", "DRAIN"), SCALE_IN, drain, NOW)
    assert not expired_drain(drained_since(5, "IDLE", "DRAIN"), SCALE_IN, drain, NOW)


def test_a_drain_for_another_cause_gives_no_notice() -> None:
    """The node was cordoned days ago; the scale-in of this minute must give its jobs the whole time."""
    drain = Drain(policy="Cancel", deadline="4h")
    cordoned = worker(1, "MIXED", "DRAIN", reason=CORDONED, slurm={"reason_changed_at": at(NOW - timedelta(days=5))})
    assert not expired_drain(cordoned, SCALE_IN, drain, NOW)
    assert not expired_drain(cordoned, None, drain, NOW)


def test_the_clock_of_slurmctld_has_the_last_word() -> None:
    drain, began = ExpiredDrain("gpu-1", OURS, 3600), at(NOW)
    node = slurm_node(1, "MIXED", "DRAIN", reason=OURS, reason_changed_at=began)
    start = int(NOW.timestamp())
    assert is_expired(drain, node, start + 3600)
    assert not is_expired(drain, node, start + 3599)
    assert not is_expired(drain, None, start + 9999)
    assert not is_expired(
        drain, slurm_node(1, "MIXED", "DRAIN", reason=CORDONED, reason_changed_at=began), start + 9999
    )
    assert not is_expired(drain, slurm_node(1, "MIXED", reason=OURS, reason_changed_at=began), start + 9999)
    assert not is_expired(drain, slurm_node(1, "MIXED", "DRAIN", reason=OURS), start + 9999)


def test_jobs_are_ended_as_the_owner_asked() -> None:
    stays, again = Job(job_id=1), Job(job_id=2, requeue=True)
    assert ending(again, Drain(policy="Requeue")) is Ending.REQUEUE
    assert ending(stays, Drain(policy="Requeue")) is None
    assert ending(again, Drain(policy="Cancel")) is Ending.CANCEL
    assert (ending_of_lost(again), ending_of_lost(stays)) == (Ending.REQUEUE, Ending.CANCEL)
