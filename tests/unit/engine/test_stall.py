import asyncio

import pytest
from prometheus_client import REGISTRY

from kubeslurm.engine.stall import StallMeter


@pytest.mark.looptime
async def test_a_blocked_event_loop_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def stalls() -> float:
        return REGISTRY.get_sample_value("kubeslurm_loop_stall_seconds_count") or 0

    loop = asyncio.get_running_loop()
    meter = StallMeter(period=0.5)
    before = stalls()
    task = asyncio.create_task(meter.run())
    await asyncio.sleep(1.7)
    assert (meter.worst, stalls()) == (0, before)
    # As if something had blocked the loop: the timer that was due at 2.0 fires at 2.2.
    time = loop.time
    monkeypatch.setattr(loop, "time", lambda: time() + 0.5)
    await asyncio.sleep(0.5)
    task.cancel()
    assert meter.worst == pytest.approx(0.2)
    assert stalls() == before + 1
