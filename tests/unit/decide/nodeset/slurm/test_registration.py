"""Workers that Slurm does not know, and a slurmctld that lost its state."""

from kubeslurm.decide.nodeset.slurm.registration import is_state_lost, unregistered
from tests.support.workers import facts, worker


def test_an_unregistered_worker_is_started_afresh_one_at_a_time() -> None:
    lost = [worker(n, absent=True) for n in (1, 2)]
    fine = [worker(n) for n in range(3, 12)]
    assert unregistered(facts(*lost, *fine, absences={"gpu-1": 3, "gpu-2": 3}), ()) == [lost[0]]


def test_nobody_is_restarted_when_slurmctld_has_lost_its_state() -> None:
    absences = {f"gpu-{n}": 99 for n in range(4)}
    known = facts(*(worker(n, absent=True) for n in range(4)), state_lost=True, absences=absences)
    assert unregistered(known, ()) == []


def test_a_slurmctld_that_misses_too_many_has_lost_its_state() -> None:
    assert is_state_lost(missing=1, total=1, known=0)
    assert is_state_lost(missing=4, total=10, known=6)
    assert not is_state_lost(missing=3, total=10, known=7)
    assert not is_state_lost(missing=1, total=2, known=1)


def test_absence_must_be_confirmed_before_a_restart() -> None:
    assert unregistered(facts(worker(1, absent=True), absences={"gpu-1": 2}), ()) == []


def test_the_only_worker_may_be_restarted() -> None:
    lost = worker(1, absent=True)
    assert unregistered(facts(lost, absences={"gpu-1": 3}), ()) == [lost]


def test_nobody_is_unregistered_while_slurm_does_not_answer() -> None:
    assert unregistered(facts(worker(1), known=False, absences={"gpu-1": 99}), ()) == []
