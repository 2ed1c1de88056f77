"""The one view of a Slurm cluster's nodes that all controllers share, kept current by polling."""

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

INTERVAL = 0.5
# After a full list the poller rests for a multiple of what it cost: at most a sixth of slurmctld's time is taken.
REST = 5.0
# Seconds that a list can cost slurmctld for each node in it; what is more was spent by a machine that has no time.
DEAREST = 0.002
# And no longer than people wait for what they changed.
LONGEST_REST = 10.0
# While a change of ours is on its way, the rest is shorter: somebody waits for what it leads to.
SHORT_REST = 1.0
LONGEST_RETRY = 5.0
FRESH = 5.0
# A full list now and then even if nothing changed: absence is only ever concluded from full lists.
FULL_EVERY = 30.0
# Changes bring full lists in quick succession, which are one look at Slurm and not several.
APART = 30.0
# Lists are remembered for a while, and some always: those of a large cluster are far apart.
REMEMBERED = 600.0
REMEMBERED_LISTS = 64


def asleep() -> float:
    """Seconds that the machine was suspended, which the monotonic clock leaves out."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)


class Snapshot:
    """Nodes as last seen, with their age. Errors make it stale, never empty."""

    def __init__(
        self,
        client: SlurmClient,
        *,
        clock: Callable[[], float] = time.monotonic,
        asleep: Callable[[], float] = asleep,
    ) -> None:
        self.store: Store[str, Node] = Store(key=lambda node: node.name)
        self.failure = "Slurm has not been asked yet"
        self._client = client
        self._clock = clock
        self._asleep = asleep
        self._slept = 0.0
        self._last_update: int | None = None
        self._confirmed: float | None = None
        self._failures = 0
        self._lists: list[float] = []
        self._seen: dict[str, float] = {}
        self._single: dict[str, float] = {}
        self._written: dict[str, tuple[Hashable, float]] = {}
        self._cost = 0.0
        self._awaited = asyncio.Event()
        self._looking = asyncio.Lock()  # one look at a time: an older list must not come after a newer one
        self._health: list[Callable[[], None]] = []

    def age(self, now: float | None = None) -> float:
        """Seconds since the last answer that confirmed the snapshot, suspended or not; infinite before the first."""
        if self._confirmed is None:
            return float("inf")
        moment = self._clock() if now is None else now
        return moment - self._confirmed + max(0.0, self._asleep() - self._slept)

    def fresh(self, now: float | None = None, within: float = FRESH) -> bool:
        """Whether the snapshot may be trusted for a decision that cannot be undone."""
        return self._failures == 0 and self.age(now) <= max(within, 2 * REST * self._cost)

    def get(self, name: str) -> Node | None:
        return self.store.get(name)

    def absences(self, name: str, since: float = float("-inf")) -> int:
        """How many full lists in a row, all asked for after `since` and well apart, did not have the node."""
        count, at = 0, self._first_without(name, since)
        while at < len(self._lists):
            count += 1
            at = bisect_left(self._lists, self._lists[at] + APART)
        return count

    def on_health(self, listener: Callable[[], None]) -> None:
        """Calls back whenever Slurm becomes unreachable or reachable again."""
        self._health.append(listener)

    async def run(self) -> None:
        """Polls until cancelled."""
        while True:
            try:
                pause = await self.poll()
            except Exception as error:
                # A listener's mistake must not end the only source of news; the snapshot counts as stale meanwhile.
                log.exception("polling Slurm went wrong")
                pause = self._failed(f"internal error: {error!r}")
            await self._rest(pause)

    async def poll(self) -> float:
        """One look at Slurm; returns how long to rest before the next."""
        async with self._looking:
            return await self._look()

    async def _look(self) -> float:
        asked, slept = self._clock(), self._asleep()
        self._awaited.clear()
        try:
            answer = await self._client.nodes(None if self._full_list_due(asked) else self._last_update)
        except SlurmError as error:
            return self._failed(str(error))
        if answer is not None:
            self._take(answer.nodes, asked)
            self._last_update = answer.last_update
            self._cost = self._clock() - asked
        self._succeeded(asked, slept)
        if answer is None:
            return INTERVAL
        cost = min(self._cost, DEAREST * len(answer.nodes))
        return min(max(INTERVAL, REST * cost), LONGEST_REST)

    async def refresh(self, names: Iterable[str]) -> dict[str, Node | None]:
        """Reads single nodes now, for an act that must not rest on the last poll; None for one that Slurm lacks."""
        found = {}
        for name in names:
            asked = self._clock()
            node = await self._client.node(name)
            self._read(name, asked)
            self._single[name] = self._clock()
            if node is None:
                self.store.remove(name)
            else:
                self._seen[name] = self._clock()
                self.store.put(node)
            found[name] = node
        return found

    def forget(self, names: Iterable[str]) -> None:
        """Nodes whose records were deleted just now: a list that was asked for before does not bring them back."""
        now = self._clock()
        for name in names:
            self._single[name] = now
            self._written.pop(name, None)
            self.store.remove(name)

    def wrote(self, names: Iterable[str], change: Hashable) -> None:
        """A change of ours that Slurm has taken, and that nothing known of these nodes shows yet."""
        self._written |= dict.fromkeys(names, (change, self._clock()))

    def is_written(self, name: str, change: Hashable) -> bool:
        """Whether Slurm has taken this very change since the node was last read: saying it again would be idle."""
        known = self._written.get(name)
        return known is not None and known[0] == change

    def look_soon(self) -> None:
        """Cuts the present rest short, because the next look is likely to show what somebody waits for."""
        self._awaited.set()

    def _read(self, name: str, asked: float) -> None:
        known = self._written.get(name)
        if known is not None and known[1] < asked:
            del self._written[name]

    async def _rest(self, pause: float) -> None:
        earliest = self._clock() + SHORT_REST * self._cost
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._awaited.wait()
                await asyncio.sleep(earliest - self._clock())

    def _first_without(self, name: str, since: float) -> int:
        if name in self.store:
            return len(self._lists)
        seen = bisect_right(self._lists, self._seen[name]) if name in self._seen else 0
        return max(seen, bisect_left(self._lists, since))

    def _full_list_due(self, now: float) -> bool:
        return not self._lists or now - self._lists[-1] >= max(FULL_EVERY, 10 * REST * self._cost)

    def _take(self, nodes: tuple[Node, ...], asked: float) -> None:
        # A node read singly after this list was asked for is newer than what the list says of it.
        newer = {name for name, at in self._single.items() if at >= asked}
        merged = [node for node in nodes if node.name not in newer]
        merged += [node for name in newer if (node := self.store.get(name)) is not None]
        self._seen |= {node.name: asked for node in nodes}
        self._single = {name: self._single[name] for name in newer}
        self._lists.append(asked)
        old = bisect_left(self._lists, asked - REMEMBERED)
        # The last one before the horizon stays, so that what is known always spans it.
        del self._lists[: max(0, min(old - 1, len(self._lists) - REMEMBERED_LISTS))]
        self._seen = {name: at for name, at in self._seen.items() if at >= self._lists[0]}
        self.store.replace(merged)

    def _failed(self, message: str) -> float:
        self._failures += 1
        self.failure = message
        if self._failures == 1:
            self._announce()
        return float(min(INTERVAL * 2 ** (self._failures - 1), LONGEST_RETRY))

    def _succeeded(self, asked: float, slept: float) -> None:
        recovered = self._failures > 0 or self._confirmed is None
        self._failures = 0
        self._confirmed, self._slept = asked, slept
        self._written = {name: known for name, known in self._written.items() if known[1] >= asked}
        self.failure = ""
        if recovered:
            self._announce()

    def _announce(self) -> None:
        for listener in self._health:
            listener()
