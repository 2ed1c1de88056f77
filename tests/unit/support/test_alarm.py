import contextlib
import signal

import pytest

from tests.support import alarm as module
from tests.support.alarm import alarm

FAILED = pytest.fail.Exception


def test_a_block_that_waits_for_ever_fails(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(FAILED, match=r"has not ended after 0\.05 s"), alarm(0.05):
        signal.pause()
    assert "test_alarm.py" in capfd.readouterr().err, "the stack tells where it hung"


def test_it_fails_again_when_its_cleaning_up_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CLEAN_UP", 0.05)
    with pytest.raises(FAILED), alarm(0.05):
        hang_twice()


def hang_twice() -> None:
    try:
        signal.pause()
    finally:
        signal.pause()


def test_a_block_that_ends_is_left_alone() -> None:
    with alarm(60):
        pass
    assert signal.getitimer(signal.ITIMER_REAL)[0] > 1, "the limit of the test itself is in force again"


def test_a_failure_of_the_block_comes_through() -> None:
    with contextlib.suppress(ValueError), alarm(60):
        raise ValueError
