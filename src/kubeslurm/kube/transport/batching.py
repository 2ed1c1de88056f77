"""Batches the chunks of a busy stream, to wake up less often."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable
from math import inf

SHORTEST, LONGEST = 0.01, 0.04  # seconds that a chunk may be held back: when a stream gets busy, and when it stays so
FULL = 1 << 17  # bytes at which the batch is complete


async def batched(chunks: AsyncIterable[bytes], wake_at: Callable[[int], None]) -> AsyncIterator[bytes]:
    """The chunks as they arrive; while they follow each other quickly, those of some milliseconds as one.

    An API server puts every event in a TLS record of its own, and waking up for it costs more CPU than handling it.
    `wake_at` tells the kernel how many bytes must have arrived before it wakes us. A single chunk is never held back.
    """
    loop = asyncio.get_running_loop()
    release: asyncio.TimerHandle | None = None
    pause, handled = 0.0, -inf
    async for chunk in chunks:
        waited = loop.time() - handled
        # A timer fires a little late: what was held back for a pause arrives within one and a half.
        busy = waited < max(1.5 * pause, SHORTEST)
        yield chunk
        pause = min(max(2 * pause, SHORTEST), LONGEST) if busy else 0.0
        if busy and len(chunk) < FULL:
            if release is not None:
                release.cancel()
            wake_at(FULL)
            release = loop.call_later(pause, wake_at, 1)
        handled = loop.time()
