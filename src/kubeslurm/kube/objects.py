"""What Kubernetes objects of any kind have in common: key, version, identity, decoder."""

from collections.abc import Mapping
from datetime import UTC, datetime
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
    """Versions of one kind can be compared as integers; Kubernetes itself does so since 1.35."""
    return int(obj.metadata.resourceVersion or 0)


def uid_of(obj: Resource) -> str:
    return obj.metadata.uid


def micro_time() -> str:
    """The time now as a MicroTime of Kubernetes."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def key_of_tree(tree: Tree) -> Key:
    metadata = tree["metadata"]
    return Key(metadata.get("namespace", ""), metadata.get("name", ""))


@cache
def decoder_of(kind: Kind[T]) -> msgspec.json.Decoder[T]:
    return msgspec.json.Decoder(kind.type)


def kube_store(indices: Mapping[str, Index[T]] | None = None) -> Store[Key, T]:
    """A store for Kubernetes objects: ordered by resourceVersion, deletions remembered by uid."""
    return Store(key_of, indices=indices, version=version_of, identity=uid_of)
