"""How far apart the passes over a large set are, so that what they cost grows with its size and not with its square."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kubeslurm.engine.key import Key

SHARE = 40.0  # looking at a set, a seventh of a pass, is followed by a rest of that many times the CPU it took
SHORTEST = 0.3  # less than that is the queue's business
LONGEST = 2.0


class Pace:
    """Every change of one of many pods asks for a pass over all of them; those within the rest are one pass."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, cpu: Callable[[], float] = time.thread_time
    ) -> None:
        self._clock = clock
        self._cpu = cpu
        self._next: dict[Key, float] = {}

    def wait(self, key: Key) -> float:
        """Seconds until the next pass is due; zero when it is."""
        due = self._next.get(key)
        if due is None:
            return 0.0
        if (left := due - self._clock()) > 0:
            return left
        del self._next[key]
        return 0.0

    @contextmanager
    def measured(self, key: Key) -> Iterator[None]:
        """Takes the time of the part of a pass that does not wait for anybody."""
        start = self._cpu()
        yield
        rest = min(SHARE * (self._cpu() - start), LONGEST)
        if rest > SHORTEST:
            self._next[key] = self._clock() + rest
