"""Passes over a large set are as far apart as they are dear."""

import pytest

from kubeslurm.engine.key import Key
from kubeslurm.reconcile.pace import LONGEST, SHARE, Pace

KEY = Key("slurm", "gpu")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cpu() -> Clock:
    return Clock()


@pytest.fixture
def pace(clock: Clock, cpu: Clock) -> Pace:
    return Pace(clock, cpu)


def spend(pace: Pace, cpu: Clock, seconds: float) -> None:
    with pace.measured(KEY):
        cpu.now += seconds


def test_a_small_set_is_looked_at_whenever_it_changes(pace: Pace, cpu: Clock) -> None:
    spend(pace, cpu, 0.002)
    assert pace.wait(KEY) == 0


def test_a_dear_pass_is_followed_by_a_rest_of_a_multiple_of_it(pace: Pace, clock: Clock, cpu: Clock) -> None:
    spend(pace, cpu, 0.02)
    assert pace.wait(KEY) == pytest.approx(0.02 * SHARE)
    clock.now += 0.02 * SHARE + 0.001
    assert pace.wait(KEY) == 0


def test_no_rest_is_longer_than_people_wait(pace: Pace, cpu: Clock) -> None:
    spend(pace, cpu, 5.0)
    assert pace.wait(KEY) == pytest.approx(LONGEST)


def test_one_set_does_not_wait_for_another(pace: Pace, cpu: Clock) -> None:
    spend(pace, cpu, 0.02)
    assert pace.wait(Key("slurm", "cpu")) == 0
