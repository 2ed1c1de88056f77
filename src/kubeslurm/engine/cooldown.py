"""Cool-downs: keys that are not to be handled before a moment."""

from collections.abc import Callable, Hashable, Iterator
from math import inf
from typing import Generic, TypeVar

from kubeslurm.engine.limit import exponential

K = TypeVar("K", bound=Hashable)

PRUNE_FROM = 128  # keys; fewer are not worth the walk


class Cooldown(Generic[K]):
    """The moment before which each key is left alone; a key without one may be handled.

    `back_off` doubles the time with every failure of a key, from `base` up to `limit`. A key that does not fail again
    within `limit` seconds after its cool-down starts at `base` again. What has expired is dropped as new keys come.
    """

    def __init__(self, clock: Callable[[], float], *, base: float = 0.0, limit: float = 0.0) -> None:
        self._clock = clock
        self._base = base
        self._limit = limit
        self._until: dict[K, float] = {}
        self._failures: dict[K, int] = {}
        self._prune_at = PRUNE_FROM

    def start(self, key: K, seconds: float) -> None:
        """Leaves the key alone for that many seconds from now, whatever was left of an earlier cool-down."""
        if len(self._until) >= self._prune_at:
            self._prune()
        self._until[key] = self._clock() + seconds

    def back_off(self, key: K) -> float:
        """Leaves the key alone after a failure, longer every time; returns the seconds."""
        if self._until.get(key, -inf) <= self._clock() - self._limit:
            self.end(key)
        failures = self._failures.get(key, 0)
        seconds = exponential(failures, self._base, self._limit)
        self.start(key, seconds)
        self._failures[key] = failures + 1
        return seconds

    def remaining(self, key: K) -> float:
        """Seconds until the key may be handled; zero if it may be now."""
        until = self._until.get(key)
        return 0.0 if until is None else max(0.0, until - self._clock())

    def active(self) -> Iterator[K]:
        """The keys that may not be handled now."""
        now = self._clock()
        return (key for key, until in self._until.items() if until > now)

    def end(self, key: K) -> None:
        """Lets the key be handled at once and forgets its failures."""
        self._until.pop(key, None)
        self._failures.pop(key, None)

    def forget(self, matches: Callable[[K], bool]) -> None:
        """Ends the cool-downs of all keys that match, as those of a deleted object."""
        for key in [key for key in self._until if matches(key)]:
            self.end(key)

    def __len__(self) -> int:
        return len(self._until)

    def _prune(self) -> None:
        """Drops what has expired; the next walk comes when the rest has doubled, so that it costs little per key."""
        expired = self._clock() - self._limit
        for key in [key for key, until in self._until.items() if until <= expired]:
            self.end(key)
        self._prune_at = max(PRUNE_FROM, 2 * len(self._until))
