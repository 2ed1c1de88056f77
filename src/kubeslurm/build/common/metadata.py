"""What every object that we build starts with: kind, metadata, owner, labels and annotations."""

from collections.abc import Mapping
from typing import Any

from kubeslurm.api import names
from kubeslurm.api.kinds import Kind, kind_of
from kubeslurm.api.meta import Tree
from kubeslurm.api.resource import SlurmResource
from kubeslurm.api.slinky.fragments import PodTemplate, ServiceSpec
from kubeslurm.build.common.merge import merge_metadata

# These change with every apply or chart version; on a pod template they would restart daemons without need.
VOLATILE_LABELS = frozenset({"helm.sh/chart", "app.kubernetes.io/version"})
VOLATILE_ANNOTATIONS = ("kubectl.kubernetes.io/last-applied-configuration", "meta.helm.sh/", f"{names.OWN_GROUP}/")


def object_tree(kind: Kind[Any], metadata: Tree, **fields: object) -> Tree:
    """A whole object; fields that are None are left out."""
    body = {key: value for key, value in fields.items() if value is not None}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **body}


def owner_reference(owner: SlurmResource) -> Tree:
    """Makes `owner` the controller of a child."""
    kind = kind_of(owner)
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": owner.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def child_metadata(owner: SlurmResource, name: str, *layers: Tree | None) -> Tree:
    """The metadata of a child: labels and annotations of all layers, where a later layer wins."""
    tree: Tree = {"name": name, "namespace": owner.namespace, "ownerReferences": [owner_reference(owner)]}
    return tree | {field: value for field, value in merge_metadata(*layers).items() if value}


def workload_metadata(
    owner: SlurmResource,
    name: str,
    template: PodTemplate | None,
    labels: Mapping[str, str],
    pod_annotations: Mapping[str, str],
) -> tuple[Tree, Tree]:
    """The metadata of a workload, and that of its pod template."""
    layers = (inherited(owner), given(template), {"labels": labels})
    return child_metadata(owner, name, *layers), merge_metadata(*layers, {"annotations": pod_annotations})


def inherited(owner: SlurmResource) -> Tree:
    """Labels and annotations of a custom resource that its children take over."""
    meta = owner.metadata
    return {
        "labels": {key: value for key, value in meta.labels.items() if key not in VOLATILE_LABELS},
        "annotations": {
            key: value for key, value in meta.annotations.items() if not key.startswith(VOLATILE_ANNOTATIONS)
        },
    }


def given(template: PodTemplate | ServiceSpec | None) -> Tree | None:
    """Labels and annotations from a user's template."""
    return {"labels": template.labels, "annotations": template.annotations} if template else None


def label_selector(labels: Mapping[str, str]) -> Tree:
    """Selects exactly these labels."""
    return {"matchLabels": dict(labels)}
