"""Which worker goes first when some must go."""

from collections.abc import Iterable
from operator import attrgetter

from kubeslurm.decide.facts import Worker


def by_dispensability(workers: Iterable[Worker]) -> list[Worker]:
    """The most dispensable first: idle before working, cheap before dear, the soonest free, the youngest."""
    return sorted(workers, key=attrgetter("rank"))
