"""Workloads that are there already, perhaps made by another operator: taken over without restarting a pod."""

import msgspec

from kubeslurm.api import names
from kubeslurm.api.meta import Tree
from kubeslurm.api.views import Deployment, StatefulSet
from kubeslurm.build.common import digest

# Kubernetes refuses to change these; what is there stays.
IMMUTABLE = ("selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates")


def settled(desired: Tree, live: StatefulSet | Deployment | None) -> Tree:
    """The workload to apply: as desired, except for what cannot or need not change in the live one.

    A foreign pod template is kept as it stands, with a note of what we would have made. It is replaced when that
    differs one day, which means that somebody changed the spec and a restart is wanted anyway.
    """
    if live is None:
        return desired
    spec: Tree = desired["spec"] | {field: live.spec[field] for field in IMMUTABLE if field in live.spec}
    tree = desired | {"spec": spec}
    wish = digest.of_files({"template": msgspec.json.encode(desired["spec"]["template"], order="sorted").decode()})
    if not _is_foreign(live) or live.metadata.annotations.get(names.ADOPTED, wish) != wish:
        return tree
    annotations = {**desired["metadata"].get("annotations", {}), names.ADOPTED: wish}
    return tree | {
        "metadata": desired["metadata"] | {"annotations": annotations},
        "spec": spec | {"template": live.spec["template"]},
    }


def is_adoption(wanted: Tree, live: StatefulSet | Deployment) -> bool:
    """Whether what is about to be applied takes a foreign workload over, for the first time."""
    noted = names.ADOPTED in wanted["metadata"].get("annotations", {})
    return noted and names.ADOPTED not in live.metadata.annotations


def _is_foreign(live: StatefulSet | Deployment) -> bool:
    annotations = live.spec.get("template", {}).get("metadata", {}).get("annotations") or {}
    return names.RESTART_HASH not in annotations
