"""How far apart the passes over a large NodeSet are, so that their cost grows with its size and not with its square."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kubeslurm.engine.cooldown import Cooldown
from kubeslurm.engine.key import Key

SHARE = 40.0  # observing a NodeSet, a seventh of a pass, is followed by a pause of that many times the CPU it took
SHORTEST = 0.3  # shorter pauses are left to the queue
LONGEST = 2.0


class PassInterval:
    """Every change of one of many pods asks for a pass over all of them; those within the pause are one pass."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, cpu: Callable[[], float] = time.thread_time
    ) -> None:
        self._cooldown: Cooldown[Key] = Cooldown(clock)
        self._cpu = cpu

    def remaining(self, key: Key) -> float:
        """Seconds until the next pass is due; zero when it is."""
        return self._cooldown.remaining(key)

    @contextmanager
    def measured(self, key: Key) -> Iterator[None]:
        """Measures the part of a pass that awaits nothing."""
        start = self._cpu()
        yield
        pause = min(SHARE * (self._cpu() - start), LONGEST)
        if pause > SHORTEST:
            self._cooldown.start(key, pause)
