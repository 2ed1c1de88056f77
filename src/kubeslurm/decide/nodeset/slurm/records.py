"""Orphaned records: Slurm nodes without a pod. Which to fence, which to delete."""

import re
from collections.abc import Collection, Iterable, Mapping

import msgspec

from kubeslurm.api import names, views
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.decide.nodeset.facts import Facts
from kubeslurm.decide.nodeset.slurm.reasons import foreign_reason
from kubeslurm.decide.nodeset.worker import PodInfo
from kubeslurm.slurm.rest.models import REASON_PREFIX, Node, NodeUpdate


class Records(msgspec.Struct, frozen=True):
    """What to do with Slurm nodes that have no pod."""

    remove: tuple[str, ...] = ()
    fence: tuple[Node, ...] = ()


def without_comment(nodeset: NodeSet, nodes: Iterable[Node], *, placed: bool = True) -> list[Node]:
    """Nodes without a job and without a comment that are this NodeSet's: their pod was lost before it was written.

    Its slurmd may have said so itself; unless all pods are `placed`, though, one of them may be there that we do not
    know of. Else the NodeSet's feature and a name that it would give must do, and only where no slurmd answers: it may
    be somebody else's machine.
    """
    owner = names.slurm_node_owner(nodeset.metadata.uid)
    ours = re.compile(re.escape(nodeset.hostname_prefix or f"{nodeset.name}-") + "[0-9]+")

    def is_ours(node: Node) -> bool:
        silent = node.down and node.not_responding
        if node.extra == owner:
            return silent or placed
        return silent and nodeset.slurm_name in node.features and ours.fullmatch(node.name) is not None

    return [node for node in nodes if not node.comment and not node.busy and is_ours(node)]


def belongs_to(nodeset: NodeSet, info: PodInfo, node: Node) -> bool:
    """Whether a record is this NodeSet's. Another cluster may have a NodeSet of that name in the same Slurm: a record
    with another uid is only ever deleted when no slurmd answers there."""
    if info.nodeSetUID in ("", nodeset.metadata.uid):
        return True
    return node.down and node.not_responding and not node.busy


def orphaned(nodeset: NodeSet, facts: Facts, wanted: Collection[str]) -> Records:
    """What becomes of the records without a pod; `wanted` are the Slurm names that shall have a worker."""
    if not facts.slurm_known:
        return Records()
    kept = facts.records
    spec = nodeset.spec
    if spec.scalingMode == "DaemonSet" and spec.pruneSlurmNodeRecords == "Never" and not nodeset.deleting:
        # The record of a worker that comes back is renewed; one whose Kubernetes node left is the user's to delete.
        kept = tuple(node for node in kept if node.busy or node.name in wanted)
    return sort_out(kept, wanted)


def sort_out(records: Iterable[Node], wanted: Collection[str]) -> Records:
    """Busy records are fenced before they are deleted: their jobs have lost their processes and would hang.

    A node that an admin drained or set down keeps its record if a worker of that name is wanted again, so that what
    the admin decided outlives the pod; also where a reason of ours was put before the admin's.
    """
    remove: list[str] = []
    fence: list[Node] = []
    for node in records:
        if node.busy:
            if not node.down:
                fence.append(node)
        elif not foreign_reason(node) or node.name not in wanted:
            remove.append(node.name)
    return Records(tuple(remove), tuple(fence))


def unnamed(records: Iterable[str], nodes: Mapping[str, Node | None]) -> set[str]:
    """Records that name no pod, by the nodes as they are known now: one may be that of a pod not heard of yet."""
    return {name for name in records if (node := nodes.get(name)) is not None and not node.comment}


def deletable(
    records: Iterable[str], unnamed: Collection[str], known_pods: Collection[str], listed_pods: Collection[str]
) -> list[str]:
    """Records to delete; those that name no pod only if the API server lists no pod (by uid) that was not known."""
    if set(listed_pods) <= set(known_pods):
        return list(records)
    return [name for name in records if name not in unnamed]


def has_pod(node: Node, pod: views.Pod | None) -> bool:
    """Whether the pod that a record names still runs, given the pod of that name as it was just read."""
    info = PodInfo.parse(node.comment)
    return pod is not None and not pod.finished and (not info.podUID or pod.metadata.uid == info.podUID)


def fence_reason(node: Node) -> str:
    """The reason of a Slurm node that is fenced because its pod is gone."""
    info = PodInfo.parse(node.comment)
    return f"{REASON_PREFIX}Pod ({info.namespace}/{info.podName}) is gone"


def fence_update(planned: Node, node: Node | None, reason: str) -> NodeUpdate | None:
    """The change that takes a node down if it still is as planned; an admin's reason for a drain stays."""
    if node is None or not node.busy or node.down or node.comment != planned.comment:
        return None
    return NodeUpdate(state=("DOWN",)) if node.reason and foreign_reason(node) else NodeUpdate.down(reason)
