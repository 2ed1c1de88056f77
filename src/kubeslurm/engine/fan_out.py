"""The same act on many items with bounded concurrency; the failure of one does not hold up the others."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
E = TypeVar("E", bound=Exception)
CONCURRENCY = 24


async def for_each(
    items: Iterable[T],
    act: Callable[[T], Awaitable[None]],
    *,
    collect: type[E] | tuple[type[E], ...],
    fatal: type[Exception] | tuple[type[Exception], ...] = (),
) -> tuple[E, ...]:
    """Acts on all items; returns the failures to collect, while a fatal one ends it all."""
    queue = list(items)
    failures: list[E] = []

    async def work() -> None:
        while queue:
            item = queue.pop()
            try:
                await act(item)
            except fatal:
                raise
            except collect as error:
                failures.append(error)

    # Popped from the end, so the first item is served first.
    queue.reverse()
    await asyncio.gather(*(work() for _ in range(min(CONCURRENCY, len(queue)))))
    return tuple(failures)
