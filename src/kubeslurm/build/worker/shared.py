"""What all workers of one cluster share: their Service and their PodDisruptionBudget."""

from collections.abc import Iterable

from kubeslurm.api import labels, names
from kubeslurm.api.kinds import POD_DISRUPTION_BUDGET, SERVICE
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.build.common.metadata import label_selector, object_tree, owner_reference
from kubeslurm.build.common.services import service_port

# More than any cluster has. With `maxUnavailable`, or with a percentage, Kubernetes takes the `replicas` of NodeSets
# for the number of pods: too few in DaemonSet mode and during a scale-in, and busy workers beyond it could be evicted.
ALL_OF_THEM = 2**31 - 1


def objects(nodesets: Iterable[NodeSet], controller_name: str) -> list[Tree]:
    """The Service and the disruption budget of all workers of a Controller, owned by its NodeSets together."""
    # Of one that is deleted garbage collection removes the reference, again and again if it were set.
    by_uid = sorted((each for each in nodesets if not each.deleting), key=lambda each: each.metadata.uid)
    owners = [owner_reference(each) | {"controller": False} for each in by_uid]
    metadata = {
        "namespace": next((each.namespace for each in by_uid), ""),
        "labels": labels.worker(controller_name, controller_name),
        "ownerReferences": owners,
    }
    return [_service(controller_name, metadata), _disruption_budget(controller_name, metadata)]


def _service(controller_name: str, metadata: Tree) -> Tree:
    # Workers resolve each other before they are ready: a job step connects back to nodes that are still starting.
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "ports": [service_port(names.SLURMD, names.SLURMD_PORT)],
        "selector": {names.LABEL_CLUSTER: controller_name, names.LABEL_NAME: names.SLURMD},
    }
    return object_tree(SERVICE, {"name": names.workers_service(controller_name), **metadata}, spec=spec)


def _disruption_budget(controller_name: str, metadata: Tree) -> Tree:
    selector = label_selector({names.LABEL_CLUSTER: controller_name, names.LABEL_POD_PROTECT: "true"})
    return object_tree(
        POD_DISRUPTION_BUDGET,
        {"name": names.workers_pdb(controller_name), **metadata},
        spec={"minAvailable": ALL_OF_THEM, "selector": selector},
    )
