"""Gives the second owner of a cluster to what draining its workers needs."""

from kubeslurm.api import names
from kubeslurm.api.meta import Tree
from kubeslurm.build.common import second_owner
from kubeslurm.control import references
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches


def reference(caches: Caches, controller: Key) -> Tree | None:
    """The reference to the second owner; None while there is none."""
    found = references.configmap(caches, controller.namespace, names.second_owner(controller.name))
    return second_owner.reference(found) if found is not None and not found.deleting else None


def added(caches: Caches, controller: Key, tree: Tree) -> Tree:
    """The object with the second owner after its others."""
    second = reference(caches, controller)
    if second is None:
        return tree
    metadata = tree["metadata"]
    return tree | {"metadata": metadata | {"ownerReferences": [*metadata["ownerReferences"], second]}}
