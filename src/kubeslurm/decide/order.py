"""Which worker goes first when some must go."""

from collections.abc import Iterable

from kubeslurm.decide.facts import EPOCH, Worker

_PHASES = {"Unknown": 1, "Running": 2}  # any other phase goes first


def by_dispensability(workers: Iterable[Worker]) -> list[Worker]:
    """The most dispensable first: idle before working, cheap before dear, the soonest free, the youngest."""
    return sorted(workers, key=_rank)


def _rank(worker: Worker) -> tuple[object, ...]:
    pod = worker.pod
    created = pod.metadata.creationTimestamp
    ready_since = worker.ready_since if worker.ready else None
    return (
        bool(pod.spec.nodeName),
        _PHASES.get(pod.status.phase, 0),
        worker.ready,
        worker.cost,
        worker.deadline,
        not worker.cordoned,
        -(worker.ordinal if worker.ordinal is not None else -1),
        -(ready_since or EPOCH).timestamp(),
        -created.timestamp() if created else float("-inf"),
    )
