"""Limits in time: how often something may happen, and how long to wait after failures."""

import random
from collections.abc import Callable


class TokenBucket:
    """A token bucket; `reserve` may take tokens in advance and says how long to wait for them."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float]) -> None:
        self.rate = rate
        self.burst = burst
        self._clock = clock
        self._tokens = burst
        self._at = clock()

    def _refill(self) -> None:
        now = self._clock()
        self._tokens = min(self.burst, self._tokens + max(0.0, now - self._at) * self.rate)
        self._at = now

    def reserve(self) -> float:
        """Take a token, in advance if there is none; returns the seconds until there would have been one."""
        self._refill()
        self._tokens -= 1.0
        return max(0.0, -self._tokens / self.rate)

    def allow(self) -> bool:
        """Take a token only if there is one."""
        self._refill()
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True


def exponential(failures: int, base: float, limit: float) -> float:
    """The delay after that many earlier failures: base, 2 x base, 4 x base, ... up to the limit."""
    return min(limit, base * 2.0 ** min(failures, 62))


class Backoff:
    """Counts failures and returns exponential delays, each shortened at random by up to `jitter`."""

    def __init__(self, base: float, limit: float, *, jitter: float = 0.0) -> None:
        self.base = base
        self.limit = limit
        self.jitter = jitter
        self.failures = 0

    def next(self) -> float:
        delay = exponential(self.failures, self.base, self.limit)
        self.failures += 1
        return delay * (1.0 - self.jitter * random.random())  # noqa: S311 (spreads load, guards nothing)

    def reset(self) -> None:
        self.failures = 0
