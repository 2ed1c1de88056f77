"""Objects that cannot be decoded: what can be told of them all the same."""

from contextlib import suppress
from typing import Any

import msgspec

from kubeslurm.api.kinds import Kind
from kubeslurm.engine.key import Key
from kubeslurm.engine.store import Store
from kubeslurm.kube.transport import stream


class Unreadable(msgspec.Struct, frozen=True):
    """One object that the API server has and that cannot be decoded."""

    kind: str
    key: Key
    version: str
    controller: str  # the Controller that its spec refers to; empty when there is none, or when it cannot be read
    error: str

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


Unreadables = Store[tuple[str, Key], Unreadable]


def unreadable_store() -> Unreadables:
    """A store for such objects of all kinds."""
    store: Unreadables = Store(lambda each: (each.kind, each.key))
    store.mark_synced()
    return store


def unreadable(kind: Kind[Any], raw: msgspec.Raw | memoryview, error: Exception) -> Unreadable | None:
    """What can be told of an object; None when not even its name can."""
    with suppress(msgspec.MsgspecError):
        metadata = stream.outline(raw).metadata
        key = Key(metadata.namespace, metadata.name)
        return Unreadable(kind.kind, key, metadata.resourceVersion, _controller(raw), str(error))
    return None


class _Reference(msgspec.Struct, frozen=True):
    name: str = ""


class _Spec(msgspec.Struct, frozen=True):
    controllerRef: _Reference = _Reference()  # noqa: N815


class _Referrer(msgspec.Struct, frozen=True):
    spec: _Spec = _Spec()


def _controller(raw: msgspec.Raw | memoryview) -> str:
    with suppress(msgspec.MsgspecError):
        return msgspec.json.decode(raw, type=_Referrer).spec.controllerRef.name
    return ""
