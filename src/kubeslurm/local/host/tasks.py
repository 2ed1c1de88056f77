"""Runs programs: several side by side, their output kept for error messages, none left behind."""

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path

from kubeslurm.local.errors import LocalError

TAIL = 12  # lines of a failed program's output that are worth showing


class Failed(Exception):  # noqa: N818
    """A program ended badly; carries the end of its output."""

    def __init__(self, argv: Sequence[str], status: int, output: Sequence[str]) -> None:
        super().__init__(f"{argv[0]} ended with status {status}")
        self.output = list(output)

    def as_error(self, message: str, remedy: str) -> LocalError:
        """The same as a sentence for the user, with what the program said."""
        if any("no space left on device" in line.lower() for line in self.output):
            return LocalError(f"{message} The disk is full.", "Free some space and run the same command again.")
        said = "\n".join(f"    {line}" for line in self.output[-TAIL:])
        return LocalError(f"{message} It said:\n{said}\n" if said else message, remedy)


class Stopped(Exception):  # noqa: N818
    """The work was called off because another part of it failed."""


class Tasks:
    """The programs of one command. When one part fails or the user interrupts, all are stopped."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[str]] = set()
        self._guard = threading.Lock()
        self._stopped = False

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        on_line: Callable[[str], None] = lambda _: None,
    ) -> list[str]:
        """Run to the end and return the lines of stdout and stderr together; raises Failed."""
        words = [str(word) for word in argv]
        lines: list[str] = []
        with self._start(words, cwd, {**os.environ, **(env or {})}) as process:
            try:
                assert process.stdout is not None  # noqa: S101
                for line in map(str.rstrip, process.stdout):
                    lines.append(line)
                    on_line(line)
                status = process.wait()
            except BaseException:
                _end(process)
                raise
            finally:
                with self._guard:
                    self._running.discard(process)
        if self._stopped:
            raise Stopped
        if status:
            raise Failed(words, status, lines)
        return lines

    def _start(self, argv: list[str], cwd: Path | None, env: dict[str, str]) -> subprocess.Popen[str]:
        if shutil.which(argv[0]) is None:
            raise LocalError(f"The program {argv[0]} is not installed.", "Run `kubeslurm local doctor`.")
        with self._guard:
            if self._stopped:
                raise Stopped
            # A session of its own: Ctrl-C reaches us only, and we end the whole group. If we are killed, it ends too.
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig=TERM", "--", *argv],
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
            self._running.add(process)
            return process

    def together(self, *parts: Callable[[], object]) -> None:
        """Run the parts two at a time; the first failure stops the others and is raised."""
        with ThreadPoolExecutor(max_workers=2) as pool:
            futures = [pool.submit(part) for part in parts]
            try:
                for future in as_completed(futures):
                    future.result()
            except BaseException:
                self.stop()  # what runs; what waits ends as soon as it starts a program
                raise

    def stop(self) -> None:
        """End every running program and start no more."""
        with self._guard:
            self._stopped = True
            running = list(self._running)
        for process in running:
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, number)
            process.wait(5.0)
            return
