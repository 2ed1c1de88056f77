"""What objects have in common, and what a kind that we define says beyond its schema."""

from typing import ClassVar

import msgspec

from kubeslurm.api.meta import ObjectMeta, OwnedMeta, Rule, Wire


class Resource(Wire, frozen=True, kw_only=True):
    """An object with metadata."""

    metadata: ObjectMeta

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name; equal to an engine Key of the same two."""
        return (self.metadata.namespace, self.metadata.name)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def deleting(self) -> bool:
        return self.metadata.deletionTimestamp is not None


class Column(msgspec.Struct, frozen=True):
    """A column of `kubectl get`; priority 1 shows only with `-o wide`."""

    name: str
    path: str
    type: str = "integer"
    priority: int = 0


class Definition(msgspec.Struct, frozen=True):
    """What the CustomResourceDefinition of a kind says beyond its schema."""

    short_names: tuple[str, ...]
    columns: tuple[Column, ...]
    scales: bool = False
    rules: tuple[Rule, ...] = ()


class SlurmResource(Resource, frozen=True, kw_only=True):
    """An object of a kind that we define; the class is named like the kind."""

    definition: ClassVar[Definition]

    metadata: OwnedMeta


def _ready(part: str) -> str:
    return f'.status.conditions[?(@.type=="Ready")].{part}'


READY = Column("READY", _ready("status"), "string")
REASON = Column("REASON", _ready("reason"), "string")
MESSAGE = Column("MESSAGE", _ready("message"), "string", priority=1)
SLURM = Column("SLURM", ".status.slurmVersion", "string")
CLUSTER = Column("CLUSTER", ".spec.controllerRef.name", "string", priority=1)
AGE = Column("AGE", ".metadata.creationTimestamp", "date")
