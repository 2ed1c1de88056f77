"""Keeps a replica that may have lost leadership from writing."""

import time
from collections.abc import Callable

from kubeslurm.kube.errors import Fenced


def boot_time() -> float:
    """Seconds since boot: clock changes do not affect them, and they go on while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Fence:
    """Writes may start before `deadline` and must end before `end`; while the fence is closed none may start."""

    def __init__(self, clock: Callable[[], float] = boot_time) -> None:
        self.clock = clock
        self._deadline = float("-inf")
        self._end = float("-inf")

    def extend(self, deadline: float, end: float) -> None:
        self._deadline, self._end = deadline, end

    def close(self) -> None:
        self._deadline = self._end = float("-inf")

    @property
    def open(self) -> bool:
        return self.clock() < self._deadline

    @property
    def remaining(self) -> float:
        """Seconds for which writes may still start."""
        return self._deadline - self.clock()

    def admit(self, timeout: float) -> float:
        """The seconds that a write which starts now may take; raises Fenced when none may start."""
        now = self.clock()
        if now >= self._deadline:
            raise Fenced(0, "NotLeader", "leadership was not renewed in time, so this replica writes nothing any more")
        return min(timeout, self._end - now)
