"""Keeps programs running: starts them, restarts them when they exit, and counts the restarts.

A cluster's init supervises the control plane and the nodes, and the init of each node supervises the node's programs.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

MIN_BACKOFF = 0.25
MAX_BACKOFF = 10.0
STABLE_AFTER = 30.0
SIGNALS = {signal.SIGCHLD, signal.SIGTERM}
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND


class ComponentStatus(msgspec.Struct):
    """State of one component, as `kubeslurm local status` shows it."""

    name: str
    state: str = "waiting"  # waiting, running, restarting, done, stopped
    pid: int = 0
    restarts: int = 0
    since: float = 0.0
    last_exit: str = ""


class Component:
    """One program that has to run all the time."""

    def __init__(
        self, name: str, start: Callable[[], int], *, may_run: Callable[[], bool] = lambda: True, once: bool = False
    ) -> None:
        """`start` starts the program and returns its pid; it is called only while `may_run` returns True."""
        self.status = ComponentStatus(name, since=time.time())
        self.start = start
        self.may_run = may_run
        self.once = once
        self.backoff = MIN_BACKOFF
        self.not_before = 0.0

    def set_state(self, state: str, pid: int = 0) -> None:
        self.status.state, self.status.pid, self.status.since = state, pid, time.time()

    def exited(self, reason: str, *, success: bool = False) -> None:
        """Note that the program has exited, and schedule a restart with exponential backoff unless it may not run."""
        self.status.last_exit = reason
        if self.once and success:
            return self.set_state("done")
        if not self.may_run():
            return self.set_state("stopped")
        stable = time.time() - self.status.since > STABLE_AFTER
        self.backoff = MIN_BACKOFF if stable else min(self.backoff * 2, MAX_BACKOFF)
        self.not_before = time.monotonic() + self.backoff
        self.status.restarts += 1
        return self.set_state("restarting")

    def start_if_due(self) -> bool:
        """Start the program if it is time to; returns whether the state has changed."""
        if self.status.pid or self.status.state == "done" or time.monotonic() < self.not_before or not self.may_run():
            return False
        try:
            self.set_state("running", self.start())
        except OSError as error:
            self.exited(str(error))
        return True


def supervise(
    components: list[Component],
    report: Callable[[list[ComponentStatus]], None],
    tick: Callable[[], None] = lambda: None,
) -> None:
    """Run the components until SIGTERM; call `report` on every change, and `tick` about once a second."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    changed = True
    while True:
        started = [component for component in components if component.start_if_due()]
        changed = changed or bool(started)
        with contextlib.suppress(OSError):  # a full disk must not stop the components; the next pass tries again
            if changed:
                report([component.status for component in components])
                changed = False
            tick()
        settled = all(component.status.state in {"running", "done"} for component in components)
        received = signal.sigtimedwait(SIGNALS, 1.0 if settled else 0.03)
        if received and received.si_signo == signal.SIGTERM:
            return
        changed = _reap(components) or changed


def _reap(components: list[Component]) -> bool:
    """Reap all children that have exited, orphans too; returns whether a component was among them."""
    found = False
    with contextlib.suppress(ChildProcessError):
        while (child := os.waitpid(-1, os.WNOHANG)) != (0, 0):
            code = os.waitstatus_to_exitcode(child[1])
            for component in components:
                if component.status.pid == child[0]:
                    reason = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
                    component.exited(reason, success=code == 0)
                    found = True
    return found


def spawn(argv: tuple[str, ...], environment: Mapping[str, str], log: Path, keep: tuple[int, ...] = ()) -> int:
    """Start a program that appends its output to a log, and return its pid; it inherits the descriptors in `keep`."""
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


def rotate(log: Path, limit: int = 16 * 2**20) -> None:
    """Empty a log that exceeds the limit, and keep its last quarter beside it. Writers append, so they may go on."""
    if log.stat().st_size > limit:
        with log.open("r+b") as file:
            file.seek(-limit // 4, os.SEEK_END)
            log.with_suffix(".log.1").write_bytes(file.read())
            file.truncate(0)
