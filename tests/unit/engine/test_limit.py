import asyncio

import pytest
from prometheus_client import REGISTRY

from kubeslurm.engine.key import Key
from kubeslurm.engine.limit import Backoff, Bucket
from kubeslurm.engine.stall import StallMeter


def test_a_bucket_refuses_beyond_its_burst_and_refills_with_time() -> None:
    now = 0.0
    bucket = Bucket(rate=2, burst=3, clock=lambda: now)
    assert [bucket.allow() for _ in range(4)] == [True, True, True, False]
    now = 0.5
    assert [bucket.allow() for _ in range(2)] == [True, False]
    now = 100
    assert [bucket.allow() for _ in range(4)] == [True, True, True, False]


def test_a_bucket_lends_tokens_and_says_when_they_come() -> None:
    bucket = Bucket(rate=10, burst=1, clock=lambda: 0.0)
    assert [bucket.reserve() for _ in range(3)] == [0, pytest.approx(0.1), pytest.approx(0.2)]


def test_back_off_doubles_to_its_limit_and_jitter_only_shortens() -> None:
    backoff = Backoff(0.8, 30, jitter=0.5)
    delays = [backoff.next() for _ in range(10)]
    for delay, full in zip(delays, [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30, 30, 30], strict=True):
        assert full / 2 <= delay <= full
    backoff.reset()
    assert backoff.next() <= 0.8


def test_a_key_reads_as_users_write_it() -> None:
    assert str(Key("ns", "name")) == "ns/name"
    assert str(Key("", "node-1")) == "node-1"
    for text in ("ns/name", "node-1"):
        assert str(Key.parse(text)) == text


@pytest.mark.looptime
async def test_a_loop_that_was_blocked_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def stalls() -> float:
        return REGISTRY.get_sample_value("kubeslurm_loop_stall_seconds_count") or 0

    loop = asyncio.get_running_loop()
    meter = StallMeter(period=0.5)
    before = stalls()
    task = asyncio.create_task(meter.run())
    await asyncio.sleep(1.7)
    assert (meter.worst, stalls()) == (0, before)
    # As if something had kept the loop busy: the look that was due at 2.0 comes at 2.2.
    time = loop.time
    monkeypatch.setattr(loop, "time", lambda: time() + 0.5)
    await asyncio.sleep(0.5)
    task.cancel()
    assert meter.worst == pytest.approx(0.2)
    assert stalls() == before + 1
