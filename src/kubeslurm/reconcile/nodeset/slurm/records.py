"""Finds the Slurm nodes of a NodeSet that have no pod."""

from collections.abc import Callable, Iterable

from kubeslurm.api import names
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.decide.nodeset.slurm import records
from kubeslurm.decide.nodeset.worker import PodInfo, Worker
from kubeslurm.slurm.clusters import SlurmCluster
from kubeslurm.slurm.rest.models import Node

BY_POD_INFO = "pod-info"
BY_TRAIT = "trait"  # nodes without a comment, by what may identify their NodeSet


def add_indices(cluster: SlurmCluster) -> None:
    """Files the nodes of a cluster under the NodeSets that they may belong to."""
    cluster.snapshot.store.add_index(BY_POD_INFO, pod_owner)
    cluster.snapshot.store.add_index(BY_TRAIT, _traits)


def pod_owner(node: Node) -> tuple[str, ...]:
    """The NodeSet that the comment of a Slurm node names."""
    info = PodInfo.parse(node.comment) if node.comment else PodInfo()
    return (f"{info.namespace}/{info.nodeSetName}",) if info.nodeSetName else ()


def without_pod(
    nodeset: NodeSet,
    workers: Iterable[Worker],
    slurm: SlurmCluster,
    claims: Callable[[str], int],
    has_pod: Callable[[str], bool],
) -> tuple[Node, ...]:
    """Slurm nodes of this NodeSet without a pod, found by their comment; those without any, by other traits.

    `claims` counts the pods that claim a Slurm name, `has_pod` says whether a pod of that name is known.
    """
    ended = {worker.name for worker in workers if worker.finished}
    gone = {worker.slurm_name for worker in workers if worker.finished and not worker.terminating}
    nodes = slurm.snapshot.store
    found = []
    for node in nodes.by(BY_POD_INFO, f"{nodeset.namespace}/{nodeset.name}"):
        if claims(node.name) > (1 if node.name in gone else 0):
            continue  # as nearly all are, so that their comments need not be read
        info = PodInfo.parse(node.comment)
        known = has_pod(info.podName) and info.podName not in ended
        if not known and records.belongs_to(nodeset, info, node):
            found.append(node)
    traits = (nodeset.slurm_name, names.slurm_node_owner(nodeset.metadata.uid))
    candidates = {node.name: node for trait in traits for node in nodes.by(BY_TRAIT, trait)}
    placed = all(worker.slurm_name for worker in workers)
    unnamed = records.without_comment(nodeset, candidates.values(), placed=placed)
    return (*found, *(node for node in unnamed if not claims(node.name)))


def _traits(node: Node) -> tuple[str, ...]:
    if node.comment:
        return ()
    return (*node.features, node.extra) if node.extra else node.features
