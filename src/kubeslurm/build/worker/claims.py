"""Volume claims of workers, made from the NodeSet's templates."""

from kubeslurm.api import labels, names, slots
from kubeslurm.api.kinds import PERSISTENT_VOLUME_CLAIM, POD
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.api.slots import Slot
from kubeslurm.api.views import PersistentVolumeClaim, Pod
from kubeslurm.build.common.metadata import object_tree, owner_reference


def objects(nodeset: NodeSet, slot: Slot) -> list[Tree]:
    """The claims of one worker. With an owner reference they are deleted with the NodeSet."""
    return [
        _claim(nodeset, template, slots.claim_name(nodeset, template["metadata"]["name"], slot))
        for template in nodeset.spec.volumeClaimTemplates or ()
    ]


def of_pod(nodeset: NodeSet, pod: Pod) -> list[Tree]:
    """The claims that a pod was made with, to be made again."""
    templates = {template["metadata"]["name"]: template for template in nodeset.spec.volumeClaimTemplates or ()}
    return [
        _claim(nodeset, templates[volume.name], volume.persistentVolumeClaim.claimName)
        for volume in pod.spec.volumes
        if volume.name in templates and volume.persistentVolumeClaim
    ]


def goes(claim: PersistentVolumeClaim) -> bool:
    """Whether a claim is being deleted, or will be together with the pod that it was handed to."""
    return claim.deleting or any(owner.kind == POD.kind for owner in claim.metadata.ownerReferences)


def mounted(nodeset: NodeSet, pod: Pod) -> list[str]:
    """The claims among a pod's volumes that were made from the NodeSet's templates."""
    templates = {template["metadata"]["name"] for template in nodeset.spec.volumeClaimTemplates or ()}
    return [
        volume.persistentVolumeClaim.claimName
        for volume in pod.spec.volumes
        if volume.name in templates and volume.persistentVolumeClaim
    ]


def owned_by(pod: Pod) -> Tree:
    """The patch that lets a claim be deleted with its pod."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.metadata.uid, "controller": True}
    return {"metadata": {"ownerReferences": [owner]}}


def _claim(nodeset: NodeSet, template: Tree, name: str) -> Tree:
    given = template.get("metadata") or {}
    meta: Tree = {
        "name": name,
        "namespace": nodeset.namespace,
        "labels": (given.get("labels") or {}) | labels.selector(names.SLURMD, nodeset.name),
    }
    if given.get("annotations"):
        meta["annotations"] = given["annotations"]
    if nodeset.spec.retention.whenDeleted == "Delete":
        meta["ownerReferences"] = [owner_reference(nodeset)]
    return object_tree(PERSISTENT_VOLUME_CLAIM, meta, spec=template.get("spec") or {})
