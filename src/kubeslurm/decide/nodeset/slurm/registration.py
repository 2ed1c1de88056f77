"""Workers that Slurm does not know or does not accept, and a slurmctld that lost its state."""

from collections.abc import Collection, Iterable

from kubeslurm.decide.nodeset.facts import Facts
from kubeslurm.decide.nodeset.slurm.reasons import is_refused
from kubeslurm.decide.nodeset.worker import PodInfo, Worker

# A worker counts as unregistered only after that many full lists in a row, half a minute apart, each asked for after
# this process itself had seen its slurmd running and its node missing.
ABSENCES = 3
# A slurmctld that misses more than this share has lost its state. Jobs may still run, and come back with its volume.
MISSING_LIMIT = 0.3
AT_ONCE = 1


def unregistered(facts: Facts, leaving: Collection[str]) -> list[Worker]:
    """Ready workers that Slurm has not known for several full lists; one at a time, and none when its state is lost."""
    if not facts.slurm_known or facts.state_lost:
        return []
    found = [
        worker
        for worker in facts.workers
        if worker.node is None
        and worker.ready
        and worker.name not in leaving
        and facts.absences.get(worker.slurm_name, 0) >= ABSENCES
    ]
    return sorted(found, key=lambda worker: worker.name)[:AT_ONCE]


def is_state_lost(missing: int, total: int, known: int) -> bool:
    """Whether slurmctld has lost its state rather than a node: it knows none, or too many of `total` are missing."""
    return known == 0 or missing > max(MISSING_LIMIT * total, 1)


def refused_by_old_record(workers: Iterable[Worker], leaving: Collection[str]) -> list[Worker]:
    """Workers that Slurm refuses because the record of an earlier pod promised more than this slurmd has.

    Slurm takes a dynamic node's size only when it makes the record. A pod that made its own record and is refused
    nevertheless is configured wrongly, and a new pod would not help.
    """
    return [
        worker
        for worker in workers
        if worker.node is not None
        and is_refused(worker.node)
        and not worker.terminating
        and worker.name not in leaving
        and (info := PodInfo.parse(worker.node.comment)).podUID
        and info.podUID != worker.pod.metadata.uid
    ]
