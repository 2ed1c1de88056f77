"""What holds for all tests: the same result on every machine, however slow it is."""

import asyncio

from hypothesis import HealthCheck, settings

# Or the virtual clock's plugin makes a loop for a test without one, and leaks it.
asyncio.set_event_loop(None)

# The same examples every time. `--hypothesis-profile=default` looks for new ones.
settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("steady")
