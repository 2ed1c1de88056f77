import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kubeslurm.local.errors import LocalError
from kubeslurm.local.host import lock

HOLD = "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[2], os.O_RDONLY), fcntl.LOCK_EX); print(); sys.stdin.read()"


@contextmanager
def held_by_another(directory: Path, *words: str) -> Iterator[int]:
    """Another process holds the lock of the directory; its command line ends with these words."""
    program = directory.with_name(lock.PROGRAM)
    program.write_text(HOLD)
    argv = [sys.executable, str(program), *words, str(directory)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "c"
    path.mkdir()
    return path


def test_the_process_that_holds_the_lock_is_named_with_its_command_and_how_to_stop_it(directory: Path) -> None:
    exclusive = lock.exclusive(directory, "the cluster 'c'")
    with held_by_another(directory, "up") as pid, pytest.raises(LocalError) as caught, exclusive:
        pytest.fail("taken twice")
    assert str(caught.value).startswith(f"`kubeslurm up {directory}` (process {pid}) is at work on the cluster 'c'.")
    assert f"`kill {pid}`" in str(caught.value)


def test_a_killed_process_leaves_no_lock(directory: Path) -> None:
    with held_by_another(directory, "up") as pid:
        os.kill(pid, signal.SIGKILL)
    with lock.exclusive(directory, "it"):
        assert lock.holder(directory) == os.getpid()
    assert lock.holder(directory) == 0


def test_an_error_of_the_block_is_not_taken_for_the_lock(directory: Path) -> None:
    with pytest.raises(BlockingIOError), lock.exclusive(directory, "it"):
        raise BlockingIOError


def test_a_missing_directory_is_created(tmp_path: Path) -> None:
    with lock.exclusive(tmp_path / "a" / "b", "it"):
        assert (tmp_path / "a" / "b").is_dir()


def test_a_process_that_has_ended_is_named_by_our_program() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert lock.command_of(process.pid) == lock.PROGRAM
