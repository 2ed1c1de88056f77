"""The same act on many objects: some at a time, and none waits for another's failure."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import structlog

from kubeslurm.kube.errors import ApiError, Fenced
from kubeslurm.slurm.errors import SlurmError

log = structlog.get_logger(__name__)

T = TypeVar("T")
AT_ONCE = 24


async def each(items: Iterable[T], act: Callable[[T], Awaitable[None]]) -> tuple[str, ...]:
    """Acts on all items with bounded concurrency; returns what went wrong, one sentence per item."""
    queue = list(items)
    troubles: list[str] = []

    async def work() -> None:
        while queue:
            item = queue.pop()
            try:
                await act(item)
            except Fenced:
                raise
            except (ApiError, SlurmError) as error:
                log.info("one of many failed", reason=str(error))
                troubles.append(str(error))

    # Popped from the end, so the first item is served first.
    queue.reverse()
    await asyncio.gather(*(work() for _ in range(min(AT_ONCE, len(queue)))))
    return tuple(troubles)
