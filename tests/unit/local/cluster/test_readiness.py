import ctypes
import os

import pytest

from kubeslurm.local.cluster import readiness
from kubeslurm.local.errors import LocalError


class Kernel:
    """A machine with that many inotify instances left: the real ones are shared with all that runs here."""

    def __init__(self, free: int) -> None:
        self.free = free
        self.given: list[int] = []

    def inotify_init1(self, _flags: int) -> int:
        if len(self.given) == self.free:
            return -1
        self.given.append(os.open(os.devnull, os.O_RDONLY))
        return self.given[-1]


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    kernel = Kernel(readiness.WATCHES * 3)
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: kernel)
    return kernel


def test_watches_that_are_free_are_tried_and_given_back(kernel: Kernel) -> None:
    readiness.check_watches(2)
    assert len(kernel.given) == kernel.free
    for fd in kernel.given:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)


def test_too_few_watches_are_said_with_a_remedy(kernel: Kernel) -> None:
    with pytest.raises(LocalError, match=r"needs 32 inotify .* only 24 are free.*max_user_instances"):
        readiness.check_watches(3)
