"""Other operators in the same cluster: while one is active, this one does not act."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import structlog

from kubeslurm.api.views import Lease
from kubeslurm.engine.key import Key
from kubeslurm.engine.manager import Runnable
from kubeslurm.engine.store import Store

LEASE_NAME = "slurm-operator"
CHECK_INTERVAL = 1.0
log = structlog.get_logger("kubeslurm.operator")


class OtherOperatorError(Exception):
    """Another operator started to act on the objects that we serve; the process must end and wait."""


class OtherOperators:
    """Reads the Leases by which operators, ours and the Go one, show that they are active in other namespaces.

    A Lease counts as held for its duration after it was seen to change, on our own clock: wall clocks may differ. One
    in a namespace from which nobody can act on our objects does not count.
    """

    def __init__(
        self,
        leases: Store[Key, Lease],
        source: Runnable,
        own: Key,
        can_act: Callable[[str], Awaitable[bool]],
        clock: Callable[[], float],
    ) -> None:
        self.source = source
        self._leases = leases
        self._own = own
        self._can_act = can_act
        self._clock = clock
        self._changed: dict[Key, float] = {}
        leases.subscribe(self._on_change)

    async def active(self) -> list[Lease]:
        """The Leases, other than our own, whose holders are active operators."""
        return [lease for lease in list(self._held()) if await self._can_act(lease.namespace)]

    def _held(self) -> Iterator[Lease]:
        now = self._clock()
        for lease in self._leases:
            since = now - self._changed.get(Key(*lease.key), float("-inf"))
            if lease.key != self._own and lease.spec.holderIdentity and since < (lease.spec.leaseDurationSeconds or 15):
                yield lease

    async def clear(self) -> None:
        """Returns once no other operator is active."""
        await self._leases.wait_synced()
        logged: set[tuple[str, str]] = set()
        while others := await self.active():
            for other in others:
                who = (str(Key(*other.key)), other.spec.holderIdentity)
                if who not in logged:
                    log.warning(
                        "another operator is active; this one waits until it is gone. Remove one of the two, or give "
                        "both disjoint namespaces",
                        lease=who[0],
                        holder=who[1],
                    )
                logged.add(who)
            await asyncio.sleep(CHECK_INTERVAL)

    async def run(self) -> None:
        """Ends the process when another operator starts to act: it does not look for this one."""
        while True:
            await asyncio.sleep(CHECK_INTERVAL)
            for other in await self.active():
                raise OtherOperatorError(
                    f"{other.spec.holderIdentity} holds the Lease {Key(*other.key)} and acts on the same objects: "
                    "remove one of the two operators, or give both disjoint namespaces"
                )

    def _on_change(self, key: Key, _old: Lease | None, new: Lease | None) -> None:
        if new is None:
            self._changed.pop(key, None)
        else:
            self._changed[key] = self._clock()
