"""The nodes of one Slurm cluster, kept current by polling, in a store that all controllers share."""

import asyncio
import contextlib
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable

import structlog

from kubeslurm.engine.store import Store
from kubeslurm.slurm.errors import SlurmError
from kubeslurm.slurm.rest.client import SlurmClient
from kubeslurm.slurm.rest.models import Node

log = structlog.get_logger(__name__)

# Seconds between polls while nothing changes.
INTERVAL = 0.5
# The pause after a full list, as a multiple of the time it took: polling takes at most a sixth of slurmctld's time.
PAUSE_FACTOR = 5.0
# The same while somebody waits for the result of a change.
SHORT_PAUSE_FACTOR = 1.0
# Seconds per node that a list can cost slurmctld; more than that was spent by a busy machine and does not count.
MAX_COST_PER_NODE = 0.002
MAX_PAUSE = 10.0
MAX_RETRY_PAUSE = 5.0
MAX_AGE = 5.0
# Seconds after which a full list is asked for even if nothing has changed: only full lists prove that a node is absent.
FULL_LIST_INTERVAL = 30.0
# Seconds between lists that count as separate proofs of absence: while nodes change, full lists follow each other fast.
ABSENCE_INTERVAL = 30.0
# How long the times of full lists are kept, and how many in any case: those of a large cluster are far apart.
HISTORY = 600.0
HISTORY_LISTS = 64


def time_suspended() -> float:
    """Seconds that the machine was suspended, which the monotonic clock does not count."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)


class Snapshot:
    """Nodes as last read, with their age. Errors make it stale, never empty."""

    def __init__(
        self,
        client: SlurmClient,
        *,
        clock: Callable[[], float] = time.monotonic,
        time_suspended: Callable[[], float] = time_suspended,
    ) -> None:
        self.store: Store[str, Node] = Store(key=lambda node: node.name)
        self.failure = "Slurm has not been asked yet"
        self._client = client
        self._clock = clock
        self._time_suspended = time_suspended
        self._last_update: int | None = None
        self._confirmed_at: float | None = None
        self._suspended_before = 0.0  # time_suspended at the last confirmation
        self._failures = 0
        self._list_cost = 0.0
        self._lists: list[float] = []  # when each full list was asked for
        self._seen_at: dict[str, float] = {}
        self._read_at: dict[str, float] = {}  # nodes that were read singly or deleted
        self._written: dict[str, tuple[Hashable, float]] = {}
        self._hurry = asyncio.Event()
        self._polling = asyncio.Lock()  # one poll at a time: an older list must not come after a newer one
        self._health_listeners: list[Callable[[], None]] = []

    def age(self) -> float:
        """Seconds since the last answer that confirmed the snapshot, suspended or not; infinite before the first."""
        if self._confirmed_at is None:
            return float("inf")
        return self._clock() - self._confirmed_at + max(0.0, self._time_suspended() - self._suspended_before)

    def fresh(self) -> bool:
        """Whether the snapshot is recent enough for a decision that cannot be undone."""
        return self._failures == 0 and self.age() <= max(MAX_AGE, 2 * PAUSE_FACTOR * self._list_cost)

    def get(self, name: str) -> Node | None:
        return self.store.get(name)

    def absences(self, name: str, since: float = float("-inf")) -> int:
        """How many full lists in a row did not have the node; only lists after `since` and well apart count."""
        count, at = 0, self._first_without(name, since)
        while at < len(self._lists):
            count += 1
            at = bisect_left(self._lists, self._lists[at] + ABSENCE_INTERVAL)
        return count

    def on_health(self, listener: Callable[[], None]) -> None:
        """Calls the listener whenever Slurm becomes unreachable or reachable again."""
        self._health_listeners.append(listener)

    async def run(self) -> None:
        """Polls until cancelled."""
        while True:
            try:
                pause = await self.poll()
            except Exception as error:
                # A bug in a listener must not end the poller; the snapshot counts as stale meanwhile.
                log.exception("polling Slurm failed")
                pause = self._failed(f"internal error: {error!r}")
            await self._wait(pause)

    async def poll(self) -> float:
        """Asks Slurm once; returns how many seconds to wait before the next poll."""
        async with self._polling:
            return await self._poll()

    async def _poll(self) -> float:
        asked_at, suspended = self._clock(), self._time_suspended()
        self._hurry.clear()
        try:
            answer = await self._client.nodes(None if self._full_list_due(asked_at) else self._last_update)
        except SlurmError as error:
            return self._failed(str(error))
        if answer is not None:
            self._take_list(answer.nodes, asked_at)
            self._last_update = answer.last_update
            self._list_cost = self._clock() - asked_at
        self._succeeded(asked_at, suspended)
        if answer is None:
            return INTERVAL
        cost = min(self._list_cost, MAX_COST_PER_NODE * len(answer.nodes))
        return min(max(INTERVAL, PAUSE_FACTOR * cost), MAX_PAUSE)

    async def refresh(self, names: Iterable[str]) -> dict[str, Node | None]:
        """Reads single nodes, for an act that needs more than the last poll; None for one that Slurm does not have."""
        found = {}
        for name in names:
            asked_at = self._clock()
            node = await self._client.node(name)
            self._drop_written(name, asked_at)
            self._read_at[name] = self._clock()
            if node is None:
                self.store.remove(name)
            else:
                self._seen_at[name] = self._clock()
                self.store.put(node)
            found[name] = node
        return found

    def forget(self, names: Iterable[str]) -> None:
        """Removes nodes whose records were just deleted; a list that was asked for before does not bring them back."""
        now = self._clock()
        for name in names:
            self._read_at[name] = now
            self._written.pop(name, None)
            self.store.remove(name)

    def wrote(self, names: Iterable[str], change: Hashable) -> None:
        """Notes a change that Slurm has accepted and that the snapshot does not show yet."""
        self._written |= dict.fromkeys(names, (change, self._clock()))

    def is_written(self, name: str, change: Hashable) -> bool:
        """Whether Slurm has accepted this very change since the node was last read, so that it need not be repeated."""
        known = self._written.get(name)
        return known is not None and known[0] == change

    def poll_soon(self) -> None:
        """Shortens the present pause, because the next poll is likely to show what somebody waits for."""
        self._hurry.set()

    def _drop_written(self, name: str, asked_at: float) -> None:
        known = self._written.get(name)
        if known is not None and known[1] < asked_at:
            del self._written[name]

    async def _wait(self, pause: float) -> None:
        earliest = self._clock() + SHORT_PAUSE_FACTOR * self._list_cost
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._hurry.wait()
                await asyncio.sleep(earliest - self._clock())

    def _first_without(self, name: str, since: float) -> int:
        if name in self.store:
            return len(self._lists)
        after_seen = bisect_right(self._lists, self._seen_at[name]) if name in self._seen_at else 0
        return max(after_seen, bisect_left(self._lists, since))

    def _full_list_due(self, now: float) -> bool:
        return not self._lists or now - self._lists[-1] >= max(FULL_LIST_INTERVAL, 10 * PAUSE_FACTOR * self._list_cost)

    def _take_list(self, nodes: tuple[Node, ...], asked_at: float) -> None:
        # What was read singly after this list was asked for is newer than the list.
        newer = {name for name, at in self._read_at.items() if at >= asked_at}
        merged = [node for node in nodes if node.name not in newer]
        merged += [node for name in newer if (node := self.store.get(name)) is not None]
        self._seen_at |= {node.name: asked_at for node in nodes}
        self._read_at = {name: self._read_at[name] for name in newer}
        self._lists.append(asked_at)
        old = bisect_left(self._lists, asked_at - HISTORY)
        # One list older than that stays, so that the history always covers the whole time.
        del self._lists[: max(0, min(old - 1, len(self._lists) - HISTORY_LISTS))]
        self._seen_at = {name: at for name, at in self._seen_at.items() if at >= self._lists[0]}
        self.store.replace(merged)

    def _failed(self, message: str) -> float:
        self._failures += 1
        self.failure = message
        if self._failures == 1:
            self._notify_health()
        return float(min(INTERVAL * 2 ** (self._failures - 1), MAX_RETRY_PAUSE))

    def _succeeded(self, asked_at: float, suspended: float) -> None:
        recovered = self._failures > 0 or self._confirmed_at is None
        self._failures = 0
        self._confirmed_at, self._suspended_before = asked_at, suspended
        self._written = {name: known for name, known in self._written.items() if known[1] >= asked_at}
        self.failure = ""
        if recovered:
            self._notify_health()

    def _notify_health(self) -> None:
        for listener in self._health_listeners:
            listener()
