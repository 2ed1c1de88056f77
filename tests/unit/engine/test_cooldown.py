"""Keys are left alone until a moment, longer after each failure, and are forgotten when that is long ago."""

import pytest

from kubeslurm.engine.cooldown import PRUNE_FROM, Cooldown
from tests.support.clock import HandClock


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def plain(clock: HandClock) -> Cooldown[str]:
    return Cooldown(clock)


@pytest.fixture
def growing(clock: HandClock) -> Cooldown[str]:
    return Cooldown(clock, base=1.0, limit=10.0)


def test_a_key_may_be_handled_unless_its_cooldown_runs(plain: Cooldown[str], clock: HandClock) -> None:
    assert plain.remaining("a") == 0
    plain.start("a", 5.0)
    assert plain.remaining("a") == 5
    assert plain.remaining("b") == 0
    clock.now += 2
    assert plain.remaining("a") == 3
    clock.now += 3
    assert plain.remaining("a") == 0


def test_a_cooldown_that_starts_again_counts_from_then(plain: Cooldown[str], clock: HandClock) -> None:
    plain.start("a", 5.0)
    clock.now += 4
    plain.start("a", 2.0)
    assert plain.remaining("a") == 2


def test_each_failure_doubles_the_cooldown_up_to_the_limit(growing: Cooldown[str], clock: HandClock) -> None:
    seconds = []
    for _ in range(6):
        seconds.append(growing.back_off("a"))
        assert growing.remaining("a") == seconds[-1]
        clock.now += seconds[-1]
    assert seconds == [1, 2, 4, 8, 10, 10]
    assert growing.back_off("b") == 1


def test_failures_count_while_they_follow_within_the_limit(growing: Cooldown[str], clock: HandClock) -> None:
    growing.back_off("a")
    clock.now += 1 + 9.5
    assert growing.back_off("a") == 2
    clock.now += 2 + 10
    assert growing.back_off("a") == 1


def test_an_ended_cooldown_forgets_the_failures(growing: Cooldown[str]) -> None:
    growing.back_off("a")
    growing.back_off("a")
    growing.end("a")
    assert growing.remaining("a") == 0
    assert growing.back_off("a") == 1
    growing.end("never seen")


def test_only_running_cooldowns_are_active(plain: Cooldown[str], clock: HandClock) -> None:
    plain.start("a", 5.0)
    plain.start("b", 1.0)
    clock.now += 1
    assert set(plain.active()) == {"a"}


def test_all_keys_of_an_object_are_forgotten_together(clock: HandClock) -> None:
    cooldown: Cooldown[tuple[str, str]] = Cooldown(clock, base=1.0, limit=10.0)
    for key in (("gone", "a"), ("gone", "b"), ("kept", "a")):
        cooldown.back_off(key)
    cooldown.forget(lambda key: key[0] == "gone")
    assert set(cooldown.active()) == {("kept", "a")}
    assert cooldown.back_off(("gone", "a")) == 1
    assert cooldown.back_off(("kept", "a")) == 2


@pytest.mark.parametrize("limit", [0.0, 10.0], ids=["plain", "with back-off"])
def test_expired_keys_do_not_accumulate(clock: HandClock, limit: float) -> None:
    cooldown: Cooldown[int] = Cooldown(clock, base=1.0, limit=limit)
    for number in range(10 * PRUNE_FROM):
        cooldown.start(number, 1.0)
        clock.now += 1
    assert len(cooldown) <= PRUNE_FROM


def test_no_running_cooldown_is_dropped_however_many_there_are(growing: Cooldown[str]) -> None:
    for number in range(10 * PRUNE_FROM):
        growing.back_off(str(number))
    assert len(growing) == len(set(growing.active())) == 10 * PRUNE_FROM
    assert growing.back_off("0") == 2
