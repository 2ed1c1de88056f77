"""When a daemon's machine is gone for good."""

from kubeslurm.api.views import Node, Pod

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


def is_lost(pod: Pod, node: Node | None) -> bool:
    """Whether nothing of the pod can run any more: its Node was removed, or somebody vouches that it is switched off.

    A node that merely does not answer is neither: slurmctld may still run there and write to the state volume.
    """
    if not pod.spec.nodeName:
        return False
    return node is None or any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)
