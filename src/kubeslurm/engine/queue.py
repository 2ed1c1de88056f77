"""A queue of keys to reconcile: each waits at most once, and none is handled twice at the same time."""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from kubeslurm.engine.cooldown import Cooldown
from kubeslurm.engine.limit import TokenBucket, exponential

K = TypeVar("K", bound=Hashable)

RETRY_BASE, RETRY_LIMIT = 0.2, 300.0
RETRIES_PER_SECOND, RETRY_BURST = 10.0, 100.0
EPSILON = 1e-6  # a deadline computed twice may differ in the last digit


class Closed(Exception):  # noqa: N818 (a signal, not a fault)
    """The queue was closed and hands out no more keys."""


def _loop_time() -> float:
    return asyncio.get_running_loop().time()


class Queue(Generic[K]):
    """A work queue with the semantics of client-go's, two priorities and a coalescing window.

    An add while the key is being handled gives exactly one more pass. With a window, passes of one key start at least
    that many seconds apart; the first change is still handled at once.
    """

    def __init__(self, *, window: float = 0.0, clock: Callable[[], float] = _loop_time) -> None:
        self._window = window
        self.clock = clock
        self._ready: dict[bool, dict[K, float]] = {True: {}, False: {}}  # urgent -> key -> since when
        self._processing: set[K] = set()
        self._again: dict[K, bool] = {}  # key that was added while being handled -> urgent
        self._due: dict[K, tuple[float, bool]] = {}  # key -> deadline, urgent
        self._heap: list[tuple[float, int, K]] = []
        self._sequence = 0
        self._windows: Cooldown[K] = Cooldown(self._now)
        self._failures: dict[K, int] = {}
        self._bucket: TokenBucket | None = None
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def add(self, key: K, *, urgent: bool = True) -> None:
        """Ask for a pass now."""
        if self._closed:
            return
        if key in self._processing:
            self._again[key] = urgent or self._again.get(key, False)
            return
        if self._window and (wait := self._windows.remaining(key)) > EPSILON:
            self.add_after(key, wait, urgent=urgent)
            return
        self._make_ready(key, urgent)

    def add_after(self, key: K, seconds: float, *, urgent: bool = True) -> None:
        """Ask for a pass in that many seconds; of several such requests for a key the earliest counts."""
        if self._closed:
            return
        if seconds <= 0:
            self.add(key, urgent=urgent)
            return
        self._promote_due()  # what is due already is a pass of its own and must not replace this request
        deadline = self.clock() + seconds
        known = self._due.get(key)
        if known is not None and known[0] <= deadline:
            if urgent and not known[1]:
                self._due[key] = (known[0], True)
            return
        self._due[key] = (deadline, urgent or (known is not None and known[1]))
        self._sequence += 1
        heapq.heappush(self._heap, (deadline, self._sequence, key))
        self._arm()

    def retry(self, key: K, *, after: float = 0.0) -> float:
        """Ask for a pass after the key's back-off (or `after`, if that is longer); returns the delay."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = exponential(failures, RETRY_BASE, RETRY_LIMIT)
        if self._bucket is None:
            self._bucket = TokenBucket(RETRIES_PER_SECOND, RETRY_BURST, self.clock)
        delay = max(delay, after, self._bucket.reserve())
        self.add_after(key, delay)
        return delay

    def reset_backoff(self, key: K) -> None:
        """Forget the failures of the key."""
        self._failures.pop(key, None)

    def take(self) -> K | None:
        """The next key if one is ready; the caller owns it until done()."""
        if self._closed:
            return None
        self._promote_due()
        for ready in (self._ready[True], self._ready[False]):
            if ready:
                key = next(iter(ready))
                del ready[key]
                self._processing.add(key)
                if self._window:
                    self._windows.start(key, self._window)
                return key
        return None

    async def get(self) -> K:
        """The next key, as soon as one is ready."""
        while not self._closed:
            key = self.take()
            if key is not None:
                return key
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            self._arm()
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
                elif not self._closed:
                    self._wake()  # this task was woken for a key: wake another one instead
                raise
        raise Closed

    def done(self, key: K) -> None:
        """The key is handled; if it was added meanwhile, it gets one more pass."""
        self._processing.remove(key)
        urgent = self._again.pop(key, None)
        if urgent is not None:
            self.add(key, urgent=urgent)

    def close(self) -> None:
        """Hand out nothing more; keys being handled may still be finished."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiters:
            self._wake()

    @property
    def depth(self) -> int:
        """Keys that could be handled now."""
        return len(self._ready[True]) + len(self._ready[False])

    @property
    def delayed(self) -> int:
        """Keys that wait for their deadline."""
        return len(self._due)

    @property
    def oldest_age(self) -> float:
        """Seconds that the longest waiting key has been ready."""
        heads = [next(iter(ready.values())) for ready in self._ready.values() if ready]
        return self.clock() - min(heads) if heads else 0.0

    def _now(self) -> float:
        return self.clock()

    def _make_ready(self, key: K, urgent: bool) -> None:
        if key in self._ready[True]:
            return
        since = self._ready[False].get(key)
        if since is not None and not urgent:
            return
        if since is not None:
            del self._ready[False][key]
        self._ready[urgent][key] = self.clock()
        self._wake()

    def _promote_due(self) -> None:
        if not self._heap:
            return
        # A timer may fire a rounding error before its deadline; waiting for the rest would spin on a coarse clock.
        now = self.clock() + EPSILON
        while self._heap and self._heap[0][0] <= now:
            deadline, _, key = heapq.heappop(self._heap)
            due = self._due.get(key)
            if due is None or due[0] != deadline:
                continue  # replaced by an earlier deadline
            del self._due[key]
            self.add(key, urgent=due[1])

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _arm(self) -> None:
        """Set the timer for the earliest deadline; only needed while a task waits in get()."""
        if not self._waiters or not self._heap:
            return
        deadline = self._heap[0][0]
        if self._timer is not None:
            if self._timer.when() <= deadline:
                return
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(loop.time() + deadline - self.clock(), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._promote_due()
        self._arm()
