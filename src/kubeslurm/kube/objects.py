"""What every Kubernetes object lets us ask, whatever its kind."""

from collections.abc import Mapping
from functools import cache
from typing import TypeVar

import msgspec

from kubeslurm.api.kinds import Kind
from kubeslurm.api.meta import Tree
from kubeslurm.api.resource import Resource
from kubeslurm.engine.key import Key
from kubeslurm.engine.store import Index, Store

T = TypeVar("T", bound=Resource)


def key_of(obj: Resource) -> Key:
    return Key(obj.metadata.namespace, obj.metadata.name)


def version_of(obj: Resource) -> int:
    """Versions of one kind are comparable as integers; so does Kubernetes itself since 1.35."""
    return int(obj.metadata.resourceVersion or 0)


def uid_of(obj: Resource) -> str:
    return obj.metadata.uid


def key_of_tree(tree: Tree) -> Key:
    metadata = tree["metadata"]
    return Key(metadata.get("namespace", ""), metadata.get("name", ""))


@cache
def decoder_of(kind: Kind[T]) -> msgspec.json.Decoder[T]:
    return msgspec.json.Decoder(kind.type)


def kube_store(indices: Mapping[str, Index[T]] | None = None) -> Store[Key, T]:
    """A store for Kubernetes objects: guarded by resourceVersion, deletions remembered by uid."""
    return Store(key_of, indices=indices, version=version_of, identity=uid_of)
