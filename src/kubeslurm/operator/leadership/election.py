"""When this replica may act: no other operator is active, and it is the leader among its own replicas."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

import structlog

from kubeslurm.kube.errors import ApiError
from kubeslurm.kube.leader import Leader
from kubeslurm.operator.leadership.other_operators import OtherOperators

RETRY = 2.0
log = structlog.get_logger("kubeslurm.operator")


class Election:
    """Takes part in the election only once no other operator is active, so that two never block each other."""

    def __init__(
        self,
        leader: Leader | None,
        others: OtherOperators | None,
        may_watch_leases: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        self._leader = leader
        self._others = others
        self._may_watch = may_watch_leases
        self._clear = asyncio.Event()

    async def won(self) -> None:
        """Returns when this replica may act."""
        await self._clear.wait()
        if self._leader is not None:
            await self._leader.acquired()

    async def run(self) -> None:
        """Takes part, then keeps the Lease; raises when leadership is lost."""
        tasks: list[asyncio.Task[None]] = []
        try:
            if self._others is not None and await self._can_watch():
                tasks.append(asyncio.create_task(self._others.source.run()))
                await self._others.clear()
                tasks.append(asyncio.create_task(self._others.run()))
            self._clear.set()
            if self._leader is not None:
                tasks.append(asyncio.create_task(self._leader.run()))
            await asyncio.gather(*tasks)
            await asyncio.Event().wait()
        finally:
            await _cancel(tasks)

    async def _can_watch(self) -> bool:
        """Whether the Leases of other namespaces can be watched; a role that others made may not allow it."""
        while self._may_watch is not None:
            try:
                if not await self._may_watch():
                    log.warning(
                        "operators in other namespaces cannot be noticed: the role does not allow to watch Leases"
                    )
                    return False
                break
            except ApiError as error:
                log.warning("the API server did not say which rights this process has", reason=str(error))
                await asyncio.sleep(RETRY)
        return True


async def _cancel(tasks: Iterable[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await task
