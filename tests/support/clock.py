"""Clocks for tests: one for timestamps of objects, and one that is set by hand."""

from datetime import UTC, datetime


class Clock:
    """Timestamps in the past, far enough apart for any resolution."""

    def __init__(self) -> None:
        self.now = int(datetime.now(UTC).timestamp()) - 10**6

    def tick(self) -> int:
        self.now += 10
        return self.now


class HandClock:
    """A clock that stands still until a test moves it."""

    def __init__(self, now: float = 100.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


clock = Clock()


def stamp() -> str:
    """A new timestamp, as Kubernetes writes it."""
    return datetime.fromtimestamp(clock.tick(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
