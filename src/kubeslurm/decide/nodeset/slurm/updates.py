"""What must be written to Slurm nodes: states, the pod behind each, topology and features."""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache

import msgspec

from kubeslurm.api import names
from kubeslurm.decide.nodeset.cordon import Cause
from kubeslurm.decide.nodeset.slurm import restarts
from kubeslurm.decide.nodeset.slurm.drain import DrainReason, state_update
from kubeslurm.decide.nodeset.slurm.reasons import is_own
from kubeslurm.decide.nodeset.worker import Worker
from kubeslurm.slurm.rest.models import Node, NodeUpdate

LIFTING = (("RESUME",), ("UNDRAIN",))
STATELESS_CALLS = 500  # in one pass; at some milliseconds each


def updates(
    workers: Iterable[Worker], reasons: Mapping[str, DrainReason], restarted: Collection[str]
) -> dict[str, NodeUpdate]:
    """One update per Slurm node that is not as it should be.

    Where slurmd was restarted, the comment stays until it is clear that no job was lost.
    """
    found: dict[str, NodeUpdate] = {}
    for worker in workers:
        if worker.node is None or worker.terminating or worker.finished:
            continue
        if not worker.container and worker.name not in reasons:
            continue  # the record is that of an earlier pod; this worker has no slurmd of its own yet
        parts = [state_update(worker, reasons.get(worker.name)), _placement(worker)]
        if worker.name not in restarted:
            parts.append(_comment(worker))
        update = merged(parts)
        if update is not None:
            found[worker.slurm_name] = update
    return found


def for_kubernetes_nodes(
    planned: Mapping[str, NodeUpdate], workers: Iterable[Worker], reasons: Mapping[str, DrainReason]
) -> dict[str, NodeUpdate]:
    """Those updates that drain a worker for no cause but its Kubernetes node's."""
    return {
        worker.slurm_name: update
        for worker in workers
        if (reason := reasons.get(worker.name)) is not None
        and reason.cause is Cause.NODE
        and (update := planned.get(worker.slurm_name)) is not None
        and update.state
    }


def renewed(
    planned: Mapping[str, NodeUpdate],
    workers: Iterable[Worker],
    read: Callable[[str], Node | None],
    reasons: Mapping[str, DrainReason],
    restarted: Collection[str],
) -> dict[str, NodeUpdate]:
    """Updates as they are due now: those to nodes that were read again since they were planned are decided anew.

    A worker that the new reading shows as restarted is left to the next pass.
    """
    anew = [
        Worker(pod=worker.pod, node=node, host=worker.host)
        for worker in workers
        if worker.node is not None
        and worker.slurm_name in planned
        and (node := read(worker.slurm_name)) is not worker.node
    ]
    old = {worker.slurm_name for worker in anew}
    unclear = {*restarted, *(worker.name for worker in restarts.restarted(anew))}
    return {name: update for name, update in planned.items() if name not in old} | updates(anew, reasons, unclear)


def with_comments(planned: Mapping[str, NodeUpdate], workers: Iterable[Worker]) -> dict[str, NodeUpdate]:
    """The updates, with comments that name the slurmd that runs now for these workers."""
    comments = {worker.slurm_name: NodeUpdate(comment=worker.info) for worker in workers}
    return dict(planned) | {name: merged([planned.get(name), each]) or each for name, each in comments.items()}


def lifted(planned: Mapping[str, NodeUpdate]) -> list[str]:
    """Nodes whose drain or down would be lifted."""
    return [name for name, update in planned.items() if update.state in LIFTING]


def permitted(planned: Mapping[str, NodeUpdate], nodes: Mapping[str, Node | None]) -> dict[str, NodeUpdate]:
    """The updates, less those that would resume a node which somebody else has drained since; `nodes` as just read."""
    ours = {name for name, node in nodes.items() if node is not None and is_own(node)}
    return {name: update for name, update in planned.items() if update.state not in LIFTING or name in ours}


def calls(updates: Mapping[str, NodeUpdate]) -> list[tuple[NodeUpdate, list[str]]]:
    """The same updates in few calls for one pass: nodes with the same update share one, and states come first.

    A call to Slurm carries one comment, and every worker has its own. One pass makes only so many of these calls
    that no drain has to wait long for the next one, which makes others.
    """
    groups: dict[NodeUpdate, list[str]] = {}
    for name, update in updates.items():
        groups.setdefault(update, []).append(name)
    states = [group for group in groups.items() if group[0].state]
    return [*states, *[group for group in groups.items() if not group[0].state][:STATELESS_CALLS]]


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
