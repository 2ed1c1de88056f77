"""Which taints of Kubernetes nodes workers tolerate."""

from kubeslurm.api import names
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.nodeset import NodeSet

# A kubelet that is away must not cost jobs: without a limit Kubernetes would evict the worker after five minutes.
WORKER: tuple[Tree, ...] = (
    {"key": names.WORKER_TAINT, "operator": "Equal", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
    # Set on a Kubernetes node whose Slurm node is drained; its worker must be able to come back to the node.
    {"key": names.SLURM_DRAIN, "operator": "Exists", "effect": "NoSchedule"},
)
# As for any DaemonSet: its pods stay on a node in any state, and a cordoned node gets its worker back, drained.
DAEMON: tuple[Tree, ...] = tuple(
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoSchedule"}
    for key in ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
)


def of_workers(nodeset: NodeSet) -> list[Tree]:
    """The user's tolerations, and ours for all taints that the user's do not mention."""
    template = nodeset.spec.template
    given: list[Tree] = list((template and template.spec and template.spec.get("tolerations")) or ())
    ours = WORKER + (DAEMON if nodeset.spec.scalingMode == "DaemonSet" else ())
    mentioned = {(each.get("key"), each.get("effect")) for each in given}
    return given + [each for each in ours if (each["key"], each["effect"]) not in mentioned]
