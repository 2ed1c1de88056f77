"""What every Kubernetes object carries: metadata, owners, conditions."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta

Tree: TypeAlias = dict[str, Any]
"""A JSON object kept as it is: user templates and everything we build."""

Quantity: TypeAlias = str | int

Time = Annotated[datetime, Meta(extra_json_schema={"format": "date-time"})]
Int32 = Annotated[int, Meta(extra_json_schema={"format": "int32"})]
Int64 = Annotated[int, Meta(extra_json_schema={"format": "int64"})]


class Rule(msgspec.Struct, frozen=True):
    """A CEL rule the API server checks, and the sentence a user reads when it fails."""

    message: str
    rule: str
    field: str = ""  # the field below that is wrong, such as .clusterName


def tree_of_rules(rules: Iterable[Rule]) -> list[Tree]:
    """CEL rules as a schema holds them."""
    return [
        {"message": each.message, "rule": each.rule} | ({"fieldPath": each.field} if each.field else {})
        for each in rules
    ]


def doc(text: str, *, rules: Iterable[Rule] = (), required: bool = False, **schema: Any) -> Meta:
    """Describes a field for `kubectl explain`; the rest is OpenAPI, for the API server only.

    Constraints stay out of decoding on purpose: an object stored under older, laxer rules must still reach the
    operator. So does `required`, for fields that have a default here.
    """
    if checks := tree_of_rules(rules):
        schema["x-kubernetes-validations"] = checks
    if required:
        schema["x-required"] = True
    return Meta(description=text, extra_json_schema=schema)


def defaulted(text: str, *, rules: Iterable[Rule] = (), required: bool = False, **schema: Any) -> Meta:
    """As `doc`, and the API server fills in the field's default when a user leaves it out."""
    return doc(text, rules=rules, required=required, **schema, **{"x-defaulted": True})


class Wire(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A value as Kubernetes sends it; frozen and free of cycles, so the garbage collector need not walk it."""


def tree(value: Wire) -> Tree:
    """The JSON tree of a struct, without the fields that are unset."""
    return {
        field.encode_name: _plain(item)
        for field in msgspec.structs.fields(value)
        if (item := getattr(value, field.name)) is not None
    }


def _plain(item: Any) -> Any:
    if isinstance(item, Wire):
        return tree(item)
    if isinstance(item, tuple):
        return [_plain(each) for each in item]
    return msgspec.to_builtins(item) if isinstance(item, datetime) else item


class OwnerReference(Wire, frozen=True, kw_only=True):
    """Who an object belongs to; garbage collection follows it."""

    apiVersion: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    blockOwnerDeletion: bool | None = None


class ObjectMeta(Wire, frozen=True, kw_only=True):
    """The part of metadata that the operator reads."""

    name: str = ""
    namespace: str = ""
    generateName: str = ""
    uid: str = ""
    resourceVersion: str = ""
    generation: int = 0
    creationTimestamp: datetime | None = None
    deletionTimestamp: datetime | None = None
    deletionGracePeriodSeconds: int | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    ownerReferences: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name; equal to an engine Key of the same two."""
        return (self.namespace, self.name)

    @property
    def deleting(self) -> bool:
        return self.deletionTimestamp is not None

    @property
    def controller(self) -> OwnerReference | None:
        """The one owner that manages this object, if any."""
        return next((owner for owner in self.ownerReferences if owner.controller), None)


class ManagedFields(Wire, frozen=True, kw_only=True):
    """Which fields one writer owns, as server-side apply records it."""

    manager: str = ""
    operation: str = ""
    apiVersion: str = ""
    subresource: str = ""
    fieldsV1: Tree = msgspec.field(default_factory=dict)


class OwnedMeta(ObjectMeta, frozen=True, kw_only=True):
    """Metadata of the few objects we write (or whose status we write), with the owners of their fields."""

    managedFields: tuple[ManagedFields, ...] = ()


class Condition(Wire, frozen=True, kw_only=True):
    """One aspect of an object's state: what, whether, why, since when."""

    type: Annotated[
        str,
        doc(
            "What the condition is about, in CamelCase.",
            maxLength=316,
            pattern=(
                r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
                r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
            ),
        ),
    ]
    status: Annotated[
        str, doc("Whether the condition holds; Unknown when nobody can tell.", enum=["True", "False", "Unknown"])
    ]
    reason: Annotated[
        str,
        doc(
            "One CamelCase word for programs that says why.",
            required=True,
            minLength=1,
            maxLength=1024,
            pattern="^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        ),
    ] = ""
    message: Annotated[
        str, doc("A sentence for people: what is awaited or wrong, and what to do.", required=True, maxLength=32768)
    ] = ""
    lastTransitionTime: Annotated[
        Time | None, doc("When the status last changed from one value to another.", required=True)
    ] = None
    observedGeneration: Annotated[
        Int64 | None, doc("The metadata.generation this condition was computed for.", minimum=0)
    ] = None


Conditions = Annotated[
    tuple[Condition, ...],
    doc(
        "The state of the object in words; Ready sums it up.",
        **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    ),
]
