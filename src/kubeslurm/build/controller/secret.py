"""The Secrets with the keys of a cluster: those that the operator makes, and its own copy."""

import base64
from collections.abc import Mapping

from kubeslurm.api import labels, names
from kubeslurm.api.kinds import SECRET
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.build.common.metadata import child_metadata, inherited, object_tree

MANAGER = "kubeslurm"


def keys(controller: Controller, name: str, files: Mapping[str, bytes]) -> Tree:
    """A Secret with new keys.

    It has no owner: like the state volume it outlives the Controller, and one made anew is the same cluster. It takes
    no label or annotation over, because Argo CD, Flux and kubectl prune what carries theirs and is in no manifest.
    """
    marks = {names.LABEL_MANAGED_BY: MANAGER, names.LABEL_CLUSTER: controller.name}
    metadata = {"name": name, "namespace": controller.namespace, "labels": marks}
    return object_tree(SECRET, metadata, type="Opaque", data=_encoded(files))


def kept_keys(controller: Controller, files: Mapping[str, bytes]) -> Tree:
    """Our copy of the keys that the cluster runs with.

    An uninstall may delete the originals first, and draining needs one last; what was deleted by mistake is put back.
    """
    own = {"labels": labels.slurmctld(controller.name)}
    metadata = child_metadata(controller, names.kept_keys(controller.name), inherited(controller), own)
    return object_tree(SECRET, metadata, type="Opaque", data=_encoded(files))


def _encoded(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: base64.b64encode(content).decode() for name, content in files.items()}
