"""What the workers of one cluster share, and what one NodeSet's workers mount."""

from collections.abc import Iterable

from kubeslurm.api import labels, names
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.build.common import merge, parts
from kubeslurm.build.worker import slurmd_conf


def objects(nodesets: Iterable[NodeSet], controller_name: str) -> list[Tree]:
    """The Service and the disruption budget of all workers of a Controller, owned by all its NodeSets together."""
    owners = [parts.owner(each.metadata, "NodeSet") | {"controller": False} for each in _by_age(nodesets)]
    namespace = next((each.namespace for each in nodesets), "")
    return [_service(namespace, controller_name, owners), _budget(namespace, controller_name, owners)]


def ssh_config(nodeset: NodeSet) -> Tree | None:
    """The ConfigMap with sshd_config, if workers run sshd."""
    ssh = nodeset.spec.ssh
    if ssh is None or not ssh.enabled:
        return None
    layers = merge.merge_metadata(
        parts.inherited(nodeset.metadata), {"labels": labels.labels(names.SLURMD, nodeset.name, names.WORKER)}
    )
    meta = parts.metadata(names.login_ssh_config(nodeset.name), nodeset.metadata, "NodeSet", layers)
    return parts.object_tree(
        "v1", "ConfigMap", meta, data={"sshd_config": slurmd_conf.sshd_config(ssh.extraSshdConfig)}
    )


def _by_age(nodesets: Iterable[NodeSet]) -> list[NodeSet]:
    return sorted(nodesets, key=lambda each: each.metadata.uid)


def _service(namespace: str, controller_name: str, owners: list[Tree]) -> Tree:
    selector = {names.LABEL_CLUSTER: controller_name, names.LABEL_NAME: names.SLURMD}
    meta = {
        "name": names.workers_service(controller_name),
        "namespace": namespace,
        "labels": labels.worker(controller_name, controller_name),
        "ownerReferences": owners,
    }
    # Workers resolve each other before they are ready: a job step connects back to nodes that are still starting.
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "ports": [parts.service_port(names.SLURMD, names.SLURMD_PORT, 0)],
        "selector": selector,
    }
    return parts.object_tree("v1", "Service", meta, spec=spec)


def _budget(namespace: str, controller_name: str, owners: list[Tree]) -> Tree:
    meta = {
        "name": names.workers_pdb(controller_name),
        "namespace": namespace,
        "labels": labels.worker(controller_name, controller_name),
        "ownerReferences": owners,
    }
    selector = parts.selected({names.LABEL_CLUSTER: controller_name, names.LABEL_POD_PROTECT: "true"})
    return parts.object_tree("policy/v1", "PodDisruptionBudget", meta, spec={"maxUnavailable": 0, "selector": selector})
