"""Passes over a large NodeSet are as far apart as they are expensive."""

import pytest

from kubeslurm.engine.key import Key
from kubeslurm.reconcile.nodeset.pass_interval import LONGEST, SHARE, SHORTEST, PassInterval
from tests.support.clock import HandClock

KEY = Key("slurm", "gpu")
CHEAP = SHORTEST / SHARE / 2
EXPENSIVE = LONGEST / SHARE / 2


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def cpu() -> HandClock:
    return HandClock()


@pytest.fixture
def interval(clock: HandClock, cpu: HandClock) -> PassInterval:
    return PassInterval(clock, cpu)


def spend(interval: PassInterval, cpu: HandClock, seconds: float) -> None:
    with interval.measured(KEY):
        cpu.now += seconds


def test_a_cheap_pass_is_followed_by_no_pause(interval: PassInterval, cpu: HandClock) -> None:
    spend(interval, cpu, CHEAP)
    assert interval.remaining(KEY) == 0


def test_an_expensive_pass_is_followed_by_a_pause_of_a_multiple_of_its_cost(
    interval: PassInterval, clock: HandClock, cpu: HandClock
) -> None:
    spend(interval, cpu, EXPENSIVE)
    assert interval.remaining(KEY) == pytest.approx(EXPENSIVE * SHARE)
    clock.now += EXPENSIVE * SHARE + 0.001
    assert interval.remaining(KEY) == 0


def test_the_pause_has_an_upper_limit(interval: PassInterval, cpu: HandClock) -> None:
    spend(interval, cpu, 5.0)
    assert interval.remaining(KEY) == pytest.approx(LONGEST)


def test_the_pause_of_one_nodeset_does_not_hold_up_another(interval: PassInterval, cpu: HandClock) -> None:
    spend(interval, cpu, EXPENSIVE)
    assert interval.remaining(Key("slurm", "cpu")) == 0
