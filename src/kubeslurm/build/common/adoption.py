"""Workloads that exist already, perhaps made by another operator: taken over without restarting a pod."""

import msgspec

from kubeslurm.api import names
from kubeslurm.api.meta import Tree
from kubeslurm.api.views import Deployment, StatefulSet
from kubeslurm.build.common import digest

# Kubernetes refuses to change these.
IMMUTABLE = ("selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates")


def adapted(desired: Tree, live: StatefulSet | Deployment | None) -> Tree:
    """The desired workload, except for what cannot or need not change in the live one.

    The pod template of another operator is kept, with a hash of what we would have made. It is replaced when that hash
    changes, which means that somebody changed the spec and a restart is needed anyway.
    """
    if live is None:
        return desired
    spec: Tree = desired["spec"] | {field: live.spec[field] for field in IMMUTABLE if field in live.spec}
    tree = desired | {"spec": spec}
    digest_ = digest.of_files({"template": msgspec.json.encode(desired["spec"]["template"], order="sorted").decode()})
    if not is_of_another_operator(live) or live.metadata.annotations.get(names.ADOPTED, digest_) != digest_:
        return tree
    annotations = {**desired["metadata"].get("annotations", {}), names.ADOPTED: digest_}
    return tree | {
        "metadata": desired["metadata"] | {"annotations": annotations},
        "spec": spec | {"template": live.spec["template"]},
    }


def is_adoption(desired: Tree, live: StatefulSet | Deployment) -> bool:
    """Whether applying this takes over another operator's workload for the first time."""
    noted = names.ADOPTED in desired["metadata"].get("annotations", {})
    return noted and names.ADOPTED not in live.metadata.annotations


def is_of_another_operator(live: StatefulSet | Deployment) -> bool:
    """Whether its pods were made by another operator."""
    annotations = live.spec.get("template", {}).get("metadata", {}).get("annotations") or {}
    return names.RESTART_HASH not in annotations
