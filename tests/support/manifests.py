"""Objects for tests, written as users write them."""

from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from kubeslurm.api import kinds
from kubeslurm.api.resource import Resource

T = TypeVar("T", bound=Resource)


class Manifests:
    """The objects of a YAML text, by type."""

    def __init__(self, text: str) -> None:
        self.objects = [decoded(tree) for tree in yaml.safe_load_all(text) if tree]

    @classmethod
    def read(cls, path: Path) -> "Manifests":
        return cls(path.read_text())

    def all(self, kind: type[T]) -> tuple[T, ...]:
        return tuple(each for each in self.objects if isinstance(each, kind))

    def one(self, kind: type[T]) -> T:
        (found,) = self.all(kind)
        return found


def decoded(tree: dict[str, Any]) -> Resource:
    """A tree as the operator would see it from the API server."""
    kind = kinds.kind_of(tree)
    obj: Resource = msgspec.json.decode(msgspec.json.encode(tree), type=kind.type)
    return obj
