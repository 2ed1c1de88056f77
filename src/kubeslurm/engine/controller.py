"""A controller: takes keys from a queue, runs a reconcile function on them, and acts on each outcome."""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import Any, TypeVar

import msgspec
import structlog

from kubeslurm.engine import metrics
from kubeslurm.engine.context import Pass, current
from kubeslurm.engine.key import Key
from kubeslurm.engine.queue import Closed, Queue
from kubeslurm.engine.store import Store

T = TypeVar("T")
S = TypeVar("S", bound=Hashable)

log = structlog.get_logger("kubeslurm.engine")
TURN = 0.005  # seconds of passes after which other tasks get the event loop
OUTCOMES = ("done", "requeue", "retry", "error", "terminal")
_pass_number = itertools.count(1)


class Requeue(msgspec.Struct, frozen=True):
    """Reconcile the object again in that many seconds."""

    after: float
    resets_backoff: bool = True  # False for a pass that did nothing: the failures before it still count


class Retry(Exception):  # noqa: N818 (an outcome, not a fault)
    """An expected, passing failure: back off and try again, without an error in the log."""

    def __init__(self, message: str = "", *, after: float = 0.0) -> None:
        super().__init__(message)
        self.after = after


class Terminal(Exception):  # noqa: N818 (an outcome, not a fault)
    """Trying again is pointless until the object changes."""


Reconcile = Callable[[Key], Awaitable[Requeue | None]]


class Controller:
    """Runs one reconcile function over a queue of keys, for up to `concurrency` keys at once.

    With a `window`, passes of one key start at least that many seconds apart.
    """

    def __init__(self, name: str, reconcile: Reconcile, *, concurrency: int = 4, window: float = 0.0) -> None:
        self.name = name
        self._reconcile = reconcile
        self._concurrency = concurrency
        self._queue: Queue[Key] = Queue(window=window, clock=time.monotonic)
        self._tasks: list[asyncio.Task[None]] = []
        self._seconds = metrics.RECONCILE_SECONDS.labels(name)
        self._outcomes = {each: metrics.RECONCILES.labels(name, each) for each in OUTCOMES}
        metrics.QUEUE_DEPTH.labels(name).set_function(lambda: self._queue.depth)
        metrics.QUEUE_DELAYED.labels(name).set_function(lambda: self._queue.delayed)
        metrics.QUEUE_OLDEST.labels(name).set_function(lambda: self._queue.oldest_age)

    def enqueue(self, key: Key, *, urgent: bool = True) -> None:
        """Ask for a pass; urgent keys go before those of the first list."""
        self._queue.add(key, urgent=urgent)

    def enqueue_after(self, key: Key, seconds: float) -> None:
        """Ask for a pass in that many seconds."""
        self._queue.add_after(key, seconds)

    def watch(
        self,
        store: Store[S, T],
        keys: Callable[[T], Iterable[Key]],
        *,
        when: Callable[[T | None, T | None], bool] | None = None,
    ) -> None:
        """Enqueue the keys that a changed object maps to, before and after the change, if the change counts."""

        def on_change(_key: S, old: T | None, new: T | None) -> None:
            if when is not None and not when(old, new):
                return
            urgent = store.synced
            add = self._queue.add
            before = () if old is None else tuple(keys(old))
            for key in before:
                add(key, urgent=urgent)
            if new is not None:
                for key in keys(new):
                    if key not in before:
                        add(key, urgent=urgent)

        store.subscribe(on_change)
        for obj in store:
            for key in keys(obj):
                self._queue.add(key, urgent=False)

    async def run(self) -> None:
        """Reconcile until drain() or cancellation."""
        self._queue.clock = asyncio.get_running_loop().time
        self._tasks = [
            asyncio.create_task(self._work(), name=f"{self.name}-{number}") for number in range(self._concurrency)
        ]
        try:
            await asyncio.gather(*self._tasks)
        finally:
            for task in self._tasks:
                task.cancel()

    async def drain(self, grace: float) -> bool:
        """Start no further pass and let the running ones finish; those that exceed the grace are cancelled."""
        self._queue.close()
        running = [task for task in self._tasks if not task.done()]
        if not running:
            return True
        _, late = await asyncio.wait(running, timeout=grace)
        for task in late:
            task.cancel()
        if late:
            log.warning("reconciles cancelled at shutdown", controller=self.name, count=len(late))
            await asyncio.wait(late)
        return not late

    async def _work(self) -> None:
        loop, queue = asyncio.get_running_loop(), self._queue
        turn_ends = 0.0
        while True:
            key = queue.take()
            if key is None:
                try:
                    key = await queue.get()
                except Closed:
                    return
            # Each of these tasks has a context of its own, so there is nothing to unset between passes.
            current.set(Pass(self.name, key, next(_pass_number)))
            started = loop.time()
            try:
                outcome = await self._attempt(key)
            finally:
                queue.done(key)
            ended = loop.time()
            self._outcomes[outcome].inc()
            self._seconds.observe(ended - started)
            if ended > turn_ends:  # thousands of passes that await nothing must not block the loop
                await asyncio.sleep(0)
                turn_ends = loop.time() + TURN

    async def _attempt(self, key: Key) -> str:
        try:
            result = await self._reconcile(key)
        except Terminal as error:
            self._queue.reset_backoff(key)
            log.warning("reconcile stopped until the object changes", reason=str(error))
            return "terminal"
        except Retry as error:
            delay = self._queue.retry(key, after=error.after)
            log.info("reconcile will be tried again", reason=str(error), delay=round(delay, 1))
            return "retry"
        except Exception as error:
            delay = self._queue.retry(key)
            log.exception("reconcile failed", error=_describe(error), delay=round(delay, 1))
            return "error"
        if result is None or result.resets_backoff:
            self._queue.reset_backoff(key)
        if result is None:
            return "done"
        self._queue.add_after(key, result.after)
        return "requeue"


def _describe(error: Any) -> str:
    return f"{type(error).__name__}: {error}"
