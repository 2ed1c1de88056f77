"""Which worker goes first when some must go."""

from collections.abc import Iterable
from operator import attrgetter

from kubeslurm.decide.nodeset.facts import Worker


def by_dispensability(workers: Iterable[Worker]) -> list[Worker]:
    """The most dispensable first: not ready yet, then the cheapest, idle or soonest free, cordoned, the youngest."""
    return sorted(workers, key=attrgetter("rank"))
