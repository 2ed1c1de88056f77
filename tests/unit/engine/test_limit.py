import pytest

from kubeslurm.engine.limit import Backoff, TokenBucket


def test_a_bucket_refuses_beyond_its_burst_and_refills_with_time() -> None:
    now = 0.0
    bucket = TokenBucket(rate=2, burst=3, clock=lambda: now)
    assert [bucket.allow() for _ in range(4)] == [True, True, True, False]
    now = 0.5
    assert [bucket.allow() for _ in range(2)] == [True, False]
    now = 100
    assert [bucket.allow() for _ in range(4)] == [True, True, True, False]


def test_tokens_can_be_reserved_in_advance() -> None:
    bucket = TokenBucket(rate=10, burst=1, clock=lambda: 0.0)
    assert [bucket.reserve() for _ in range(3)] == [0, pytest.approx(0.1), pytest.approx(0.2)]


def test_back_off_doubles_to_its_limit_and_jitter_only_shortens() -> None:
    backoff = Backoff(0.8, 30, jitter=0.5)
    delays = [backoff.next() for _ in range(10)]
    for delay, full in zip(delays, [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30, 30, 30], strict=True):
        assert full / 2 <= delay <= full
    backoff.reset()
    assert backoff.next() <= 0.8
