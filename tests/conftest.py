"""What holds for all tests: the same result on every machine and in any order, and no test that never ends."""

import asyncio
import secrets
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.alarm import alarm
from tests.support.order import place

# Or the virtual clock's plugin makes a loop for a test without one, and leaks it.
asyncio.set_event_loop(None)

# The same examples every time. `--hypothesis-profile=default` looks for new ones.
settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("steady")

LONGEST = 900  # seconds for a set-up, a test or a tear-down; `@pytest.mark.longest(seconds)` says otherwise
ANY = "any"
SEED = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kubeslurm")
    group.addoption("--shuffle", metavar="SEED", help="run the tests in the order of a seed: a number, or `any`")
    group.addoption("--slurmctld-on", default="", metavar="NODE", help="keep slurmctld on this Kubernetes node")


def pytest_configure(config: pytest.Config) -> None:
    given: str | None = config.getoption("shuffle")
    if hasattr(config, "workerinput"):  # a process of pytest-xdist: all of them must have the same order
        given = config.workerinput["shuffle"]
    if given is not None:
        config.stash[SEED] = secrets.randbelow(10**6) if given == ANY else int(given)
        config.option.loadscopereorder = False  # or pytest-xdist sorts files by the number of their tests


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["shuffle"] = node.config.stash.get(SEED, None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seed = config.stash.get(SEED, None)
    if seed is not None:
        items.sort(key=lambda item: place(item.nodeid, seed))


def pytest_report_header(config: pytest.Config) -> str | None:
    return f"order: --shuffle={config.stash[SEED]}" if SEED in config.stash else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config) -> None:
    if exitstatus and SEED in config.stash:
        terminalreporter.write_line(f"the order of this run: --shuffle={config.stash[SEED]}")


def longest(item: pytest.Item) -> float:
    marker = item.get_closest_marker("longest")
    return float(marker.args[0]) if marker else LONGEST


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    with alarm(longest(item)):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    with alarm(longest(item)):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    with alarm(longest(item)):
        return (yield)
