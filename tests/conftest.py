"""What holds for all tests: the same result on every machine, however slow it is, and no test that never ends."""

import asyncio
import faulthandler
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest
from hypothesis import HealthCheck, settings

# Or the virtual clock's plugin makes a loop for a test without one, and leaks it.
asyncio.set_event_loop(None)

# The same examples every time. `--hypothesis-profile=default` looks for new ones.
settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("steady")

LONGEST = 900  # seconds for a set-up, a test or a tear-down; `@pytest.mark.longest(seconds)` says otherwise


@contextmanager
def alarm(item: pytest.Item) -> Iterator[None]:
    """Fails what hangs, with its stack; the process goes on, so that fixtures clean up and the run comes to its end."""
    marker = item.get_closest_marker("longest")
    seconds = marker.args[0] if marker else LONGEST

    def fail(_number: int, _frame: FrameType | None) -> None:
        faulthandler.dump_traceback(file=2)
        pytest.fail(f"has not ended after {seconds} s")

    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    with alarm(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with alarm(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    with alarm(item):
        return (yield)
