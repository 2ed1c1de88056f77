"""When a daemon's machine is gone for good."""

from kubeslurm.api.views import Node, Pod

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
# A Node may go for a moment and come back with its kubelet; Kubernetes itself waits as long.
MISSING_SECONDS = 40.0


def is_lost(pod: Pod, node: Node | None, missing_for: float | None) -> bool:
    """Whether nothing of the pod can run any more: somebody vouches that its node is switched off, or it stays away.

    A node that merely does not answer is not lost: slurmctld may still run there and write to the state volume. Nor is
    one that only our memory lacks: `missing_for` counts from when the API server first said that there is none.
    """
    if not pod.spec.nodeName:
        return False
    if node is not None:
        return any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)
    return missing_for is not None and missing_for >= MISSING_SECONDS and not pod.ready
