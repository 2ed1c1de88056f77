"""Worker pods by what concerns them: their NodeSet, their cluster, their Slurm node, their Kubernetes node."""

from kubeslurm.api import names, views
from kubeslurm.api.kinds import CONTROLLER_REVISION, NODESET, POD
from kubeslurm.control.registration import Index
from kubeslurm.decide.nodeset.worker import Worker


def nodeset_of(obj: views.Pod | views.ControllerRevision) -> tuple[str, ...]:
    """The NodeSet an object belongs to; a worker that lost its owner reference is recognised by its labels."""
    owner = obj.metadata.controller
    if owner is not None:
        return (f"{obj.namespace}/{owner.name}",) if owner.kind == NODESET.kind else ()
    labels = obj.metadata.labels
    instance = labels.get(names.LABEL_INSTANCE)
    if labels.get(names.LABEL_NAME) == names.SLURMD and names.LABEL_CLUSTER in labels and instance:
        return (f"{obj.namespace}/{instance}",)
    return ()


def _cluster(pod: views.Pod) -> tuple[str, ...]:
    name = pod.metadata.labels.get(names.LABEL_CLUSTER)
    return (f"{pod.namespace}/{name}",) if name else ()


def _slurm_node(pod: views.Pod) -> tuple[str, ...]:
    """The cluster and the Slurm node, so that a changed Slurm node finds its pod."""
    cluster = pod.metadata.labels.get(names.LABEL_CLUSTER)
    name = Worker(pod=pod).slurm_name if cluster else ""
    return (f"{pod.namespace}/{cluster}/{name}",) if name else ()


def _kubernetes_node(pod: views.Pod) -> tuple[str, ...]:
    return (pod.spec.nodeName,) if pod.spec.nodeName and nodeset_of(pod) else ()


BY_NODESET = Index(POD, "nodeset", nodeset_of)
BY_CLUSTER = Index(POD, "cluster", _cluster)
BY_SLURM_NODE = Index(POD, "slurm-node", _slurm_node)
BY_KUBERNETES_NODE = Index(POD, "kubernetes-node", _kubernetes_node)
REVISIONS_BY_NODESET = Index(CONTROLLER_REVISION, "nodeset", nodeset_of)
