"""The second owner of workers, slurmctld and slurmrestd.

A deletion with --cascade=foreground lets garbage collection delete all children at once, busy workers included, unless
they have another owner that is not deleted so. Nobody asks for the deletion of this one: the operator deletes it when
the workers are drained.
"""

from kubeslurm.api import names
from kubeslurm.api.kinds import CONFIGMAP
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.views import ConfigMap
from kubeslurm.build.common.metadata import object_tree

ABOUT = """\
An owner of the workers, of slurmctld and of slurmrestd of this Slurm cluster. It lets a deletion wait until the workers
are drained. The operator deletes it when they are.
"""


def configmap(controller: Controller) -> Tree:
    """The object itself; without an owner, and without labels by which somebody's pruning could find it."""
    labels = {names.LABEL_CLUSTER: controller.name}
    metadata = {"name": names.second_owner(controller.name), "namespace": controller.namespace, "labels": labels}
    return object_tree(CONFIGMAP, metadata, data={"about": ABOUT})


def reference(found: ConfigMap) -> Tree:
    """The reference to it in what it owns."""
    identity = {"apiVersion": CONFIGMAP.api_version, "kind": CONFIGMAP.kind, "name": found.name}
    return identity | {"uid": found.metadata.uid, "controller": False, "blockOwnerDeletion": False}
