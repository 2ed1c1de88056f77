"""Runs programs in parallel, keeps their output for error messages, and stops all when one fails."""

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

TAIL = 12  # lines of a failed program's output that an error message shows


class CommandError(Exception):
    """A program exited with an error; has its output."""

    def __init__(self, argv: Sequence[str], status: int, output: Sequence[str]) -> None:
        super().__init__(f"{argv[0]} exited with status {status}")
        self.output = list(output)

    def as_error(self, message: str, remedy: str) -> LocalError:
        """An error for the user, with the end of the program's output."""
        if any("no space left on device" in line.lower() for line in self.output):
            return LocalError(f"{message} The disk is full.", "Free some space and run the same command again.")
        tail = "\n".join(f"    {line}" for line in self.output[-TAIL:])
        return LocalError(f"{message} Its output:\n{tail}\n" if tail else message, remedy)


class Stopped(Exception):  # noqa: N818
    """The program was stopped because another one failed."""


class Tasks:
    """The programs that one command runs. When one fails or the user interrupts, all are stopped."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        on_line: Callable[[str], None] = lambda _: None,
    ) -> list[str]:
        """Run a program and return the lines of its stdout and stderr; raises CommandError."""
        command = [str(word) for word in argv]
        lines: list[str] = []
        with self._start(command, cwd, {**os.environ, **(env or {})}) as process:
            try:
                assert process.stdout is not None  # noqa: S101
                for line in map(str.rstrip, process.stdout):
                    lines.append(line)
                    on_line(line)
                status = process.wait()
            except BaseException:
                _terminate(process)
                raise
            finally:
                with self._lock:
                    self._running.discard(process)
        if self._stopped:
            raise Stopped
        if status:
            raise CommandError(command, status, lines)
        return lines

    def _start(self, argv: list[str], cwd: Path | None, env: dict[str, str]) -> subprocess.Popen[str]:
        if shutil.which(argv[0]) is None:
            raise LocalError(f"The program {argv[0]} is not installed.", "Run `kubeslurm local doctor`.")
        with self._lock:
            if self._stopped:
                raise Stopped
            # In its own session: Ctrl-C reaches only us, and we stop the whole group. If we are killed, it ends too.
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

    def run_parallel(self, *functions: Callable[[], object]) -> None:
        """Call the functions, two at a time; the first failure stops the others and is raised."""
        with ThreadPoolExecutor(max_workers=2) as pool:
            futures = [pool.submit(function) for function in functions]
            try:
                for future in as_completed(futures):
                    future.result()
            except BaseException:
                self.stop()  # functions that have not started fail when they run their first program
                raise

    def stop(self) -> None:
        """Stop every running program, and start no more."""
        with self._lock:
            self._stopped = True
            running = list(self._running)
        for process in running:
            _terminate(process)


def _terminate(process: subprocess.Popen[str]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, number)
            process.wait(5.0)
            return
