"""Fewer wake-ups for a stream on which small pieces come thick and fast."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable
from math import inf

FIRST, LONGEST = 0.01, 0.04  # seconds that a piece may be kept waiting: when a stream gets busy, and when it stays so
PLENTY = 1 << 17  # bytes for which it pays to be woken at once


async def gathered(pieces: AsyncIterable[bytes], wake_at: Callable[[int], None]) -> AsyncIterator[bytes]:
    """The pieces as they come; while they come in quick succession, those of some milliseconds as one.

    An API server puts every event in a TLS record of its own, and to be woken for it costs more CPU than to handle it.
    `wake_at` tells the system how many bytes have to be there before it wakes us. A lone piece is never kept waiting.
    """
    loop = asyncio.get_running_loop()
    release: asyncio.TimerHandle | None = None
    pause, handled = 0.0, -inf
    async for piece in pieces:
        waited = loop.time() - handled
        # A timer fires a little late: what was held back for a pause comes within one and a half.
        busy = waited < max(1.5 * pause, FIRST)
        yield piece
        pause = min(max(2 * pause, FIRST), LONGEST) if busy else 0.0
        if busy and len(piece) < PLENTY:
            if release is not None:
                release.cancel()
            wake_at(PLENTY)
            release = loop.call_later(pause, wake_at, 1)
        handled = loop.time()
