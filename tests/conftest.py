"""Says that no event loop is set, or the virtual clock's plugin makes one for a test without a loop, and leaks it."""

import asyncio

asyncio.set_event_loop(None)
