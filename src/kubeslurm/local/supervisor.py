"""Keeps programs running: starts them, restarts what ends, remembers how often."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Coroutine
from pathlib import Path

import msgspec

from kubeslurm.local.controlplane import ENVIRONMENT, Program
from kubeslurm.local.processes import Place, spawn

FIRST_PAUSE = 0.25
LONGEST_PAUSE = 10.0
STEADY_AFTER = 30.0
LOG_LIMIT = 16 * 2**20


class Condition(msgspec.Struct, frozen=True):
    """One line of `status`."""

    name: str
    state: str  # waiting, running, restarting, done, stopped
    pid: int
    restarts: int
    since: float
    last_exit: str = ""


class Component:
    """One program that has to be there all the time."""

    def __init__(
        self, program: Program, place: Place, log: Path, *, awaits: Path | None = None, keep: tuple[int, ...] = ()
    ) -> None:
        """`awaits` is a file that has to be there first; `keep` are file descriptors to hand on."""
        self.program = program
        self.place = place
        self.log = log
        self.awaits = awaits
        self.keep = keep
        self.pid = 0
        self.state = "waiting"
        self.restarts = 0
        self.since = time.time()
        self.last_exit = ""
        self.pause = FIRST_PAUSE
        self.retired = False

    def condition(self) -> Condition:
        return Condition(self.program.name, self.state, self.pid, self.restarts, self.since, self.last_exit)

    def become(self, state: str) -> None:
        self.state = state
        self.since = time.time()


class Supervisor:
    """All components of a cluster; lives in its init."""

    def __init__(self) -> None:
        self.components: dict[str, Component] = {}
        self._watchers: dict[int, Callable[[int], None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def install(self) -> None:
        """Learn of ended children, and look after log files."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self._reap)
        self._background(self._bound_logs())

    def add(self, component: Component) -> None:
        """Start a component as soon as what it awaits is there, and keep it running."""
        self.components[component.program.name] = component
        self._background(self._start(component, 0.0))

    def retire(self, name: str) -> None:
        """Stop looking after a component; whoever asks ends it."""
        component = self.components[name]
        component.retired = True
        if component.state != "running":
            component.become("stopped")

    def kill(self, name: str) -> None:
        """End a component at once, if it runs."""
        if pid := self.components[name].pid:
            os.kill(pid, signal.SIGKILL)

    def watch(self, pid: int, ended: Callable[[int], None]) -> None:
        """Call back when a child that is no component ends."""
        self._watchers[pid] = ended

    async def _start(self, component: Component, pause: float) -> None:
        await asyncio.sleep(pause)
        while component.awaits and not component.awaits.exists() and not component.retired:  # noqa: ASYNC110  a file of another process
            await asyncio.sleep(0.02)
        if component.retired:
            return
        program = component.program
        environment = ENVIRONMENT | program.environment
        component.pid = spawn(component.place, program.argv, environment, component.log, component.keep)
        component.become("running")

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                self._ended(pid, status)

    def _ended(self, pid: int, status: int) -> None:
        if watcher := self._watchers.pop(pid, None):
            watcher(status)
        component = next((c for c in self.components.values() if c.pid == pid), None)
        if component is None:
            return
        component.pid = 0
        component.last_exit = _describe(status)
        if component.retired or (component.program.once and status == 0):
            component.become("stopped" if component.retired else "done")
            return
        if time.time() - component.since > STEADY_AFTER:
            component.pause = FIRST_PAUSE
        component.become("restarting")
        component.restarts += 1
        self._background(self._start(component, component.pause))
        component.pause = min(component.pause * 2, LONGEST_PAUSE)

    async def _bound_logs(self) -> None:
        while True:
            await asyncio.sleep(15)
            for log in {component.log for component in self.components.values()}:
                bound(log)

    def _background(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def bound(log: Path, limit: int = LOG_LIMIT) -> None:
    """Keep the last part of a log that has grown too long; writers append, so they go on at the new end."""
    if log.exists() and log.stat().st_size > limit:
        with log.open("r+b") as file:
            file.seek(-limit // 4, os.SEEK_END)
            log.with_suffix(".log.1").write_bytes(file.read())
            file.truncate(0)


def _describe(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"
