"""Workers that Slurm does not know or does not accept, and a slurmctld that lost its state."""

from collections.abc import Collection, Iterable, Mapping

import msgspec

from kubeslurm.api import names
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.decide.nodeset.facts import Facts
from kubeslurm.decide.nodeset.slurm.reasons import is_refused
from kubeslurm.decide.nodeset.worker import PodInfo, Worker
from kubeslurm.slurm.rest.models import Node

# A worker counts as unregistered only after that many full lists in a row, half a minute apart, each asked for after
# this process itself had seen its slurmd running and its node missing.
ABSENCES = 3
# A slurmctld that misses more than this share has lost its state. Jobs may still run, and come back with its volume.
MISSING_LIMIT = 0.3
AT_ONCE = 1


class Unclaimed(msgspec.Struct, frozen=True):
    """Slurm nodes of which no pod has the name: slurmd of a worker may have registered as one of them.

    slurmd registers under the host name that it sees, which may be the machine's own.
    """

    by_address: Mapping[str, str] = msgspec.field(default_factory=dict)  # address -> Slurm node
    of_nodeset: tuple[str, ...] = ()  # those that have the NodeSet's feature or mark

    @classmethod
    def of(cls, nodeset: NodeSet, nodes: Iterable[Node]) -> "Unclaimed":
        """Sorts out nodes without a pod of their name; where the comment names a pod, it was that pod's node."""
        unknown = [node for node in nodes if not PodInfo.parse(node.comment).podName]
        mark = names.slurm_node_owner(nodeset.metadata.uid)
        ours = (node.name for node in unknown if nodeset.slurm_name in node.features or node.extra == mark)
        return cls({node.address: node.name for node in unknown if node.address}, tuple(sorted(ours)))

    def name_of(self, worker: Worker, *, absent: bool) -> str:
        """The node that may be this worker's; with its own node known, only the address says so."""
        there = self.by_address.get(worker.pod.status.podIP, "")
        return there or (self.of_nodeset[0] if absent and self.of_nodeset else "")


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
