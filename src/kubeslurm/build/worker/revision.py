"""Revisions of a NodeSet's template, stored as ControllerRevisions."""

from collections.abc import Iterable
from typing import Any

import msgspec

from kubeslurm.api import labels, names
from kubeslurm.api.kinds import CONTROLLER_REVISION
from kubeslurm.api.meta import Tree, tree
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.api.views import ControllerRevision
from kubeslurm.build.common import quantity
from kubeslurm.build.common.metadata import VOLATILE_LABELS, child_metadata, object_tree

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_FNV_OFFSET, _FNV_PRIME = 2166136261, 16777619
_NAME_LIMIT = 223
_REPLACE = {"$patch": "replace"}
_encoder = msgspec.json.Encoder(order="sorted")


class Choice(msgspec.Struct, frozen=True):
    """The revision that workers shall have, and what must be written to the history."""

    hash: str
    collisions: int | None = None
    create: Tree | None = None
    renumber: tuple[str, int] | None = None  # an old revision that is desired again becomes the newest
    drop: tuple[str, ...] = ()


def data(nodeset: NodeSet) -> Tree:
    """The part of the spec that a running worker cannot take over."""
    spec = nodeset.spec
    content: Tree = {"ordinalPadding": spec.ordinalPadding, "oversubscribeNode": spec.oversubscribeNode}
    if spec.template is not None:
        content["template"] = tree(spec.template) | _REPLACE
    for field in ("slurmd", "logfile"):
        if (given := getattr(spec, field)) is not None:
            content[field] = given | _REPLACE
    if spec.ssh is not None:
        content["ssh"] = tree(spec.ssh) | _REPLACE
    if spec.extraConf:
        content["extraConf"] = spec.extraConf
    return {"spec": content}


def choose(nodeset: NodeSet, existing: Iterable[ControllerRevision], in_use: Iterable[str]) -> Choice:
    """The desired revision: an existing one with the same content, also of another operator, or a new one."""
    history = sorted(existing, key=lambda each: each.revision)
    desired = data(nodeset)
    content = _normalized(desired)
    newest = history[-1].revision if history else 0
    same = next((each for each in reversed(history) if _normalized(each.data) == content), None)
    if same is not None:
        hash_ = hash_of_revision(same)
        renumber = (same.name, newest + 1) if same.revision < newest else None
        return Choice(
            hash_, nodeset.status.collisionCount, renumber=renumber, drop=_expired(nodeset, history, hash_, in_use)
        )
    taken = {each.name for each in history}
    collisions = nodeset.status.collisionCount
    hash_ = hash_of(desired, collisions)
    while name_of(nodeset, hash_) in taken:
        collisions = (collisions or 0) + 1
        hash_ = hash_of(desired, collisions)
    return Choice(hash_, collisions, create=_object(nodeset, desired, hash_, newest + 1))


def hash_of_revision(revision: ControllerRevision) -> str:
    return revision.metadata.labels.get(names.LABEL_REVISION) or revision.name.rpartition("-")[2]


def name_of(nodeset: NodeSet, hash_: str) -> str:
    return f"{nodeset.name[:_NAME_LIMIT]}-{hash_}"


def hash_of(content: Tree, collisions: int | None) -> str:
    """A short name for the content, in letters that form no words."""
    text = _encoder.encode(content) + (b"" if collisions is None else str(collisions).encode())
    value = _FNV_OFFSET
    for byte in text:
        value = (value * _FNV_PRIME & 0xFFFFFFFF) ^ byte
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in str(value).encode())


def _object(nodeset: NodeSet, content: Tree, hash_: str, number: int) -> Tree:
    own = labels.worker(nodeset.name, nodeset.spec.controllerRef.name) | {names.LABEL_REVISION: hash_}
    metadata = child_metadata(nodeset, name_of(nodeset, hash_), {"labels": own})
    return object_tree(CONTROLLER_REVISION, metadata, data=content, revision=number)


def _expired(nodeset: NodeSet, history: list[ControllerRevision], hash_: str, in_use: Iterable[str]) -> tuple[str, ...]:
    """The oldest revisions beyond the limit; one that a pod still has is kept."""
    used = {hash_, *in_use}
    old = [each.name for each in history if hash_of_revision(each) not in used]
    return tuple(old[: max(len(old) - nodeset.spec.revisionHistoryLimit, 0)])


def _normalized(value: Any, field: str = "") -> Any:
    """The content without empty values and volatile labels, and with every quantity in one form."""
    if isinstance(value, dict):
        items = {
            key: inner
            for key, item in value.items()
            if key != "$patch" and (inner := _normalized(item, key)) not in (None, "", {}, [])
        }
        if field == "labels":
            return {key: item for key, item in items.items() if key not in VOLATILE_LABELS}
        if field in ("limits", "requests"):
            return {key: _amount(item) for key, item in items.items()}
        return items
    if isinstance(value, (list, tuple)):
        return [_normalized(item) for item in value]
    return value


def _amount(value: Any) -> str:
    try:
        return str(quantity.parse(value))
    except ValueError:
        return str(value)
