"""Passes over a large set are as far apart as they are dear."""

import pytest

from kubeslurm.engine.key import Key
from kubeslurm.reconcile.nodeset.spacing import LONGEST, SHARE, SHORTEST, Pace
from tests.support.clock import HandClock

KEY = Key("slurm", "gpu")
CHEAP = SHORTEST / SHARE / 2
DEAR = LONGEST / SHARE / 2


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def cpu() -> HandClock:
    return HandClock()


@pytest.fixture
def pace(clock: HandClock, cpu: HandClock) -> Pace:
    return Pace(clock, cpu)


def spend(pace: Pace, cpu: HandClock, seconds: float) -> None:
    with pace.measured(KEY):
        cpu.now += seconds


def test_a_small_set_is_looked_at_whenever_it_changes(pace: Pace, cpu: HandClock) -> None:
    spend(pace, cpu, CHEAP)
    assert pace.wait(KEY) == 0


def test_a_dear_pass_is_followed_by_a_rest_of_a_multiple_of_it(pace: Pace, clock: HandClock, cpu: HandClock) -> None:
    spend(pace, cpu, DEAR)
    assert pace.wait(KEY) == pytest.approx(DEAR * SHARE)
    clock.now += DEAR * SHARE + 0.001
    assert pace.wait(KEY) == 0


def test_no_rest_is_longer_than_people_wait(pace: Pace, cpu: HandClock) -> None:
    spend(pace, cpu, 5.0)
    assert pace.wait(KEY) == pytest.approx(LONGEST)


def test_one_set_does_not_wait_for_another(pace: Pace, cpu: HandClock) -> None:
    spend(pace, cpu, DEAR)
    assert pace.wait(Key("slurm", "cpu")) == 0
