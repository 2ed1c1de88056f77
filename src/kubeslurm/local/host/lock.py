"""Lets one command at a time work on a directory, and names the process that does.

The kernel keeps the lock, and releases it when the process ends, however it ends. Nothing is written.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from kubeslurm.local.errors import LocalError

PROGRAM = "kubeslurm"


@contextlib.contextmanager
def exclusive(directory: Path, what: str) -> Iterator[None]:
    """Hold the lock of a directory, which is created if it is missing; raises at once if another process holds it."""
    directory.mkdir(parents=True, exist_ok=True)
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if not _acquire(fd):
            raise _busy(directory, what)
        yield
    finally:
        os.close(fd)


def holder(directory: Path) -> int:
    """The pid of the process that holds the lock; 0 if it cannot be seen, as from another container."""
    inode = str(directory.stat().st_ino)
    for line in Path("/proc/locks").read_text().splitlines():
        # `1: FLOCK  ADVISORY  WRITE 7157 fe:00:10037135 0 EOF`; waiting processes have `->` after the number.
        fields = line.split()
        if fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == inode and _has_open(fields[4], directory):
            return int(fields[4])
    return 0


def command_of(pid: int) -> str:
    """The command line of a process, without the interpreter and the path of our program."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_text().strip("\0").split("\0")
    except OSError:
        return PROGRAM
    named = [number for number, word in enumerate(words) if Path(word).name == PROGRAM]
    return " ".join([PROGRAM, *words[named[0] + 1 :]]) if named else Path(words[0]).name


def _acquire(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _busy(directory: Path, what: str) -> LocalError:
    pid = holder(directory)
    if not pid:
        return LocalError(f"Another command is at work on {what}.", "Wait until it has ended.")
    return LocalError(
        f"`{command_of(pid)}` (process {pid}) is at work on {what}.",
        f"Wait until it has ended, or stop it with `kill {pid}` and run the same command again.",
    )


def _has_open(pid: str, directory: Path) -> bool:
    """Whether a process has the directory open: inode numbers are unique only within one file system."""
    with contextlib.suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if os.readlink(link) == str(directory.resolve()):
                    return True
    return False
