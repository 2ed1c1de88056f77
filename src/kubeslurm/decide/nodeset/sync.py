"""What Slurm must be told about its nodes: states, the pod behind each, topology and features."""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache

import msgspec

from kubeslurm.api import names
from kubeslurm.decide.nodeset import drain, health
from kubeslurm.decide.nodeset.drain import Hold
from kubeslurm.decide.nodeset.facts import Worker
from kubeslurm.slurm.rest.models import Node, NodeUpdate


def changes(workers: Iterable[Worker], holds: Mapping[str, Hold], suspects: Collection[str]) -> dict[str, NodeUpdate]:
    """One update per Slurm node that is not as it should be; suspects keep their comment until they are cleared."""
    found: dict[str, NodeUpdate] = {}
    for worker in workers:
        if worker.node is None or worker.terminating or worker.finished:
            continue
        if not worker.container and worker.name not in holds:
            continue  # the record is a predecessor's; without a slurmd of its own this worker has no say about it
        parts = [drain.change(worker, holds.get(worker.name)), _placement(worker)]
        if worker.name not in suspects:
            parts.append(_comment(worker))
        update = merged(parts)
        if update is not None:
            found[worker.slurm_name] = update
    return found


def of_cordoned(
    made: Mapping[str, NodeUpdate], workers: Iterable[Worker], holds: Mapping[str, Hold]
) -> dict[str, NodeUpdate]:
    """Those changes that drain a worker for no cause but its Kubernetes node's."""
    return {
        worker.slurm_name: update
        for worker in workers
        if (held := holds.get(worker.name)) is not None
        and held.cause == drain.NODE
        and (update := made.get(worker.slurm_name)) is not None
        and update.state
    }


def renewed(
    made: Mapping[str, NodeUpdate],
    workers: Iterable[Worker],
    read: Callable[[str], Node | None],
    holds: Mapping[str, Hold],
    suspects: Collection[str],
) -> dict[str, NodeUpdate]:
    """Changes as they are due now: those to nodes that were read again since they were made are decided anew.

    Whom the new reading makes a suspect is left to the next pass, which judges suspects.
    """
    anew = [
        Worker(pod=worker.pod, node=node, host=worker.host)
        for worker in workers
        if worker.node is not None
        and worker.slurm_name in made
        and (node := read(worker.slurm_name)) is not worker.node
    ]
    old = {worker.slurm_name for worker in anew}
    doubtful = {*suspects, *(worker.name for worker in health.suspects(anew))}
    return {name: update for name, update in made.items() if name not in old} | changes(anew, holds, doubtful)


def grouped(updates: Mapping[str, NodeUpdate]) -> list[tuple[NodeUpdate, list[str]]]:
    """The same updates as few calls: nodes that are told the same thing are told together."""
    groups: dict[NodeUpdate, list[str]] = {}
    for name, update in updates.items():
        groups.setdefault(update, []).append(name)
    return list(groups.items())


def merged(parts: Iterable[NodeUpdate | None]) -> NodeUpdate | None:
    """Several updates of different fields as one call."""
    fields: dict[str, object] = {}
    for part in parts:
        if part is not None:
            fields |= {name: value for name, value in msgspec.structs.asdict(part).items() if value is not None}
    return NodeUpdate(**fields) if fields else None  # type: ignore[arg-type]


def _comment(worker: Worker) -> NodeUpdate | None:
    # Only the slurmd that runs now may be named: the comment is how a restart under a running job is noticed.
    if not worker.container or worker.node is None or worker.node.invalid:
        return None
    return NodeUpdate(comment=worker.info) if worker.node.comment != worker.info else None


def _placement(worker: Worker) -> NodeUpdate | None:
    node, host = worker.node, worker.host
    if node is None or host is None:
        return None
    annotations = host.metadata.annotations
    topology = annotations.get(names.TOPOLOGY_SPEC, "")
    parts = [NodeUpdate(topology_str=topology) if topology and topology != node.topology else None]
    wanted = _features(annotations.get(names.FEATURES_SPEC, ""))
    for field, current in (("features", node.features), ("features_act", node.active_features)):
        kept, have = _sorted_out(current)
        if have != wanted:
            parts.append(msgspec.structs.replace(NodeUpdate(), **{field: (*kept, *wanted)}))
    return merged(parts)


@lru_cache
def _sorted_out(features: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Features of a Slurm node: those that others gave it, and those of its Kubernetes node."""
    ours = tuple(sorted(each for each in features if each.startswith(names.FEATURE_PREFIX)))
    return tuple(each for each in features if each not in ours), ours


@lru_cache
def _features(text: str) -> tuple[str, ...]:
    """The features that a Kubernetes node gives its workers; most nodes say the same."""
    return tuple(sorted({names.FEATURE_PREFIX + each.strip() for each in text.split(",") if each.strip()}))
