import ctypes
import os

import pytest

from kubeslurm.local.cluster import readiness
from kubeslurm.local.errors import LocalError


class FakeKernel:
    """A kernel with this many free inotify instances; real ones are shared with other processes."""

    def __init__(self, free: int) -> None:
        self.free = free
        self.opened: list[int] = []

    def inotify_init1(self, _flags: int) -> int:
        if len(self.opened) == self.free:
            return -1
        self.opened.append(os.open(os.devnull, os.O_RDONLY))
        return self.opened[-1]


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> FakeKernel:
    kernel = FakeKernel(readiness.INOTIFY_INSTANCES * 3)
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: kernel)
    return kernel


def test_inotify_instances_are_opened_and_closed_again(kernel: FakeKernel) -> None:
    readiness.check_inotify(2)
    assert len(kernel.opened) == kernel.free
    for fd in kernel.opened:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)


def test_too_few_inotify_instances_are_an_error_with_a_remedy(kernel: FakeKernel) -> None:
    with pytest.raises(LocalError, match=r"needs 32 inotify .* only 24 are free.*max_user_instances"):
        readiness.check_inotify(3)
