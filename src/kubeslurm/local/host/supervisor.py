"""Keeps programs running: starts them, restarts what ends, remembers how often.

Each cluster's init has one for the control plane and the nodes, and each node has one for its own programs.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

FIRST_PAUSE = 0.25
LONGEST_PAUSE = 10.0
STEADY_AFTER = 30.0
AWAITED = {signal.SIGCHLD, signal.SIGTERM}
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND


class Condition(msgspec.Struct):
    """One line of `status`."""

    name: str
    state: str = "waiting"  # waiting, running, restarting, done, stopped
    pid: int = 0
    restarts: int = 0
    since: float = 0.0
    last_exit: str = ""


class Component:
    """One program that has to be there all the time."""

    def __init__(
        self, name: str, start: Callable[[], int], *, may_run: Callable[[], bool] = lambda: True, once: bool = False
    ) -> None:
        """`start` returns a process number, and is called when `may_run` says so."""
        self.condition = Condition(name, since=time.time())
        self.start = start
        self.may_run = may_run
        self.once = once
        self.pause = FIRST_PAUSE
        self.due = 0.0

    def become(self, state: str, pid: int = 0) -> None:
        self.condition.state, self.condition.pid, self.condition.since = state, pid, time.time()

    def ended(self, how: str, *, well: bool = False) -> None:
        """It is no longer there; come back after a pause, longer each time, unless that was wanted."""
        self.condition.last_exit = how
        if self.once and well:
            return self.become("done")
        if not self.may_run():
            return self.become("stopped")
        steady = time.time() - self.condition.since > STEADY_AFTER
        self.pause = FIRST_PAUSE if steady else min(self.pause * 2, LONGEST_PAUSE)
        self.due = time.monotonic() + self.pause
        self.condition.restarts += 1
        return self.become("restarting")

    def start_if_due(self) -> bool:
        """Says whether anything has changed."""
        if self.condition.pid or self.condition.state == "done" or time.monotonic() < self.due or not self.may_run():
            return False
        try:
            self.become("running", self.start())
        except OSError as error:
            self.ended(str(error))
        return True


def supervise(
    components: list[Component], report: Callable[[list[Condition]], None], tick: Callable[[], None] = lambda: None
) -> None:
    """Look after the components until asked to stop; say what changes, and call `tick` now and then."""
    signal.pthread_sigmask(signal.SIG_BLOCK, AWAITED)
    unsaid = True
    while True:
        started = [component for component in components if component.start_if_due()]
        unsaid = unsaid or bool(started)
        with contextlib.suppress(OSError):  # a full disk must not end what runs; it is tried again
            if unsaid:
                report([component.condition for component in components])
                unsaid = False
            tick()
        settled = all(component.condition.state in {"running", "done"} for component in components)
        caught = signal.sigtimedwait(AWAITED, 1.0 if settled else 0.03)
        if caught and caught.si_signo == signal.SIGTERM:
            return
        unsaid = _reap(components) or unsaid


def _reap(components: list[Component]) -> bool:
    """Let go of every ended child, ours or left behind by others; says whether a component was among them."""
    found = False
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
            code = os.waitstatus_to_exitcode(ended[1])
            for component in components:
                if component.condition.pid == ended[0]:
                    how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
                    component.ended(how, well=code == 0)
                    found = True
    return found


def spawn(argv: tuple[str, ...], environment: Mapping[str, str], log: Path, keep: tuple[int, ...] = ()) -> int:
    """Start a program with its output at the end of a log; `keep` are file descriptors to hand on."""
    files = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), _APPEND, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
        *((os.POSIX_SPAWN_DUP2, fd, fd) for fd in keep),
    ]
    defaults = (signal.SIGPIPE, signal.SIGINT)
    return os.posix_spawnp(
        argv[0], argv, environment, file_actions=files, setsid=True, setsigmask=(), setsigdef=defaults
    )


def bound(log: Path, limit: int = 16 * 2**20) -> None:
    """Keep the last part of a log that has grown too long; writers append, so they go on at the new end."""
    if log.stat().st_size > limit:
        with log.open("r+b") as file:
            file.seek(-limit // 4, os.SEEK_END)
            log.with_suffix(".log.1").write_bytes(file.read())
            file.truncate(0)
