"""When this replica may act: no other operator is at work, and among our own replicas it is the leader."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

import structlog

from kubeslurm.kube.errors import ApiError
from kubeslurm.kube.leader import Leader
from kubeslurm.operator.other_operators import OtherOperators

RETRY = 2.0
log = structlog.get_logger("kubeslurm.operator")


class Election:
    """Stands for election only once no other operator is at work, so that two never keep each other away."""

    def __init__(
        self, leader: Leader | None, others: OtherOperators | None, may_see: Callable[[], Awaitable[bool]] | None = None
    ) -> None:
        self._leader = leader
        self._others = others
        self._may_see = may_see
        self._clear = asyncio.Event()

    async def won(self) -> None:
        """Returns when this replica may act."""
        await self._clear.wait()
        if self._leader is not None:
            await self._leader.acquired()

    async def run(self) -> None:
        """Stands, then holds on; raises what ends the mandate."""
        tasks: list[asyncio.Task[None]] = []
        try:
            if self._others is not None and await self._can_see():
                tasks.append(asyncio.create_task(self._others.source.run()))
                await self._others.clear()
                tasks.append(asyncio.create_task(self._others.run()))
            self._clear.set()
            if self._leader is not None:
                tasks.append(asyncio.create_task(self._leader.run()))
            await asyncio.gather(*tasks)
            await asyncio.Event().wait()
        finally:
            await _end(tasks)

    async def _can_see(self) -> bool:
        """Whether the Leases of other namespaces can be seen; a role from elsewhere may not allow it."""
        while self._may_see is not None:
            try:
                if not await self._may_see():
                    log.warning(
                        "operators in other namespaces cannot be noticed: the role does not allow to watch Leases"
                    )
                    return False
                break
            except ApiError as error:
                log.warning("own rights could not be asked for", reason=str(error))
                await asyncio.sleep(RETRY)
        return True


async def _end(tasks: Iterable[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await task
