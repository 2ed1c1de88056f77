"""The time in a world in memory."""

from datetime import UTC, datetime


class Clock:
    """The time in this world: events are far enough apart for any clock, and all of them in the past."""

    def __init__(self) -> None:
        self.now = int(datetime.now(UTC).timestamp()) - 10**6

    def tick(self) -> int:
        self.now += 10
        return self.now


clock = Clock()


def stamp() -> str:
    """A moment of its own, as Kubernetes writes it."""
    return datetime.fromtimestamp(clock.tick(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
