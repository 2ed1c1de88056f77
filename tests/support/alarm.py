"""A time limit for what runs in this process, also for what waits in the kernel."""

import faulthandler
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

CLEAN_UP = 300.0  # seconds for what a failed block still does, before it fails again


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Fails a block that hangs, with its stack, and again when its cleaning up hangs; the process goes on."""

    def fail(_number: int, _frame: FrameType | None) -> None:
        faulthandler.dump_traceback(file=2)
        pytest.fail(f"has not ended after {seconds:g} s")

    outer = signal.signal(signal.SIGALRM, fail)
    left = signal.setitimer(signal.ITIMER_REAL, seconds, CLEAN_UP)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, outer)
        signal.setitimer(signal.ITIMER_REAL, *left)
