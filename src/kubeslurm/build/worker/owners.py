"""The owner references of worker pods."""

from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.api.views import Pod
from kubeslurm.build.common.metadata import owner_reference


def missing(nodeset: NodeSet, pod: Pod, second: Tree) -> list[Tree]:
    """The references that a pod of this NodeSet lacks: another operator made it, or it was orphaned before."""
    have = {each.uid for each in pod.metadata.ownerReferences}
    wanted = [second] if pod.metadata.controller is not None else [owner_reference(nodeset), second]
    return [each for each in wanted if each["uid"] not in have]


def patch(pod: Pod, references: list[Tree]) -> Tree:
    """A strategic merge patch that adds references to this very pod."""
    return {"metadata": {"uid": pod.metadata.uid, "ownerReferences": references}}
