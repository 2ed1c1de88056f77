"""Waiting with a deadline for what takes a moment."""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# Seconds. Longer than all of Slurm's own periods, such as the two minutes after which it repeats what got lost: a
# machine may be slow and busy, and a wait that ends well costs nothing.
WITHIN = 180.0


def wait_for(
    what: str,
    look: Callable[[], T | None],
    *,
    within: float = WITHIN,
    every: float = 0.2,
    despite: type[Exception] | tuple[type[Exception], ...] = (),
    story: Callable[[], str] = str,
) -> T:
    """The first value that is true; fails with `what`, and the `story` so far, when it does not come in time.

    An error named in `despite` counts as not yet.
    """
    end = time.monotonic() + within
    trouble = ""
    while True:
        try:
            if found := look():
                return found
        except despite as error:
            trouble = f" ({error})"
        assert time.monotonic() < end, f"waited {within:.0f} s in vain for {what}{trouble}\n{story()}".rstrip()
        time.sleep(every)


async def eventually(what: str, look: Callable[[], object], *, within: float = WITHIN) -> None:
    """The same in a running event loop."""
    try:
        async with asyncio.timeout(within):
            while not look():  # noqa: ASYNC110 (the condition is the world's, not ours)
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"waited {within:.0f} s in vain for {what}") from None
