"""How many workers a NodeSet with ordinals has too few or too many."""

from collections.abc import Collection, Iterable

from kubeslurm.decide.nodeset.cordon import Cause
from kubeslurm.decide.nodeset.worker import Worker, by_dispensability

BURST = 250


def free_ordinals(count: int, taken: Collection[int]) -> list[int]:
    """The lowest ordinals that no pod holds, not even one that is on its way out."""
    found: list[int] = []
    ordinal = 0
    while len(found) < count:
        if ordinal not in taken:
            found.append(ordinal)
        ordinal += 1
    return found


def vacancies(want: int, workers: Iterable[Worker]) -> list[int]:
    """Ordinals without a pod. A terminating pod still fills its slot, so that no more than `want` ever run at once."""
    present = [worker for worker in workers if worker.mode == "StatefulSet"]
    taken = {worker.ordinal for worker in present if worker.ordinal is not None}
    return free_ordinals(max(want - len(present), 0), taken)


def missing(want: int, workers: Iterable[Worker]) -> list[int]:
    """Ordinals to create now."""
    return vacancies(want, workers)[:BURST]


def surplus(want: int, workers: Iterable[Worker]) -> list[Worker]:
    """Workers that must go for `want` to remain.

    One that is already being drained for this goes on being drained: changing the choice would drain a second busy
    node and let new jobs onto the first.
    """
    present = [worker for worker in workers if worker.mode == "StatefulSet" and not worker.terminating]
    if len(present) <= want:
        return []
    ranked = sorted(by_dispensability(present), key=lambda worker: worker.cause != Cause.SCALE_IN)
    return ranked[: len(present) - want]
