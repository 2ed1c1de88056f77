"""The stores of all watched kinds: how they are filled, and how answers to our own writes reach them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from kubeslurm.api.kinds import Kind
from kubeslurm.api.resource import Resource
from kubeslurm.engine.key import Key
from kubeslurm.engine.store import Index, Store
from kubeslurm.kube.objects import key_of, kube_store
from kubeslurm.kube.reflector import Reflector
from kubeslurm.kube.transport.connection import Connection

T = TypeVar("T", bound=Resource)


class Selection(msgspec.Struct, frozen=True):
    """Which objects of a kind a store holds."""

    namespaces: tuple[str, ...] = ("",)
    labels: Mapping[str, str] = {}
    fields: str = ""
    keep: Callable[[Any], bool] = lambda _obj: True

    @property
    def label_selector(self) -> str:
        return ",".join(f"{name}={value}" for name, value in self.labels.items())

    def covers(self, obj: Resource) -> bool:
        """Whether the watch would bring the object too; a field selector cannot be judged here."""
        metadata = obj.metadata
        return (
            ("" in self.namespaces or metadata.namespace in self.namespaces)
            and not self.fields
            and all(metadata.labels.get(name) == value for name, value in self.labels.items())
            and self.keep(obj)
        )


class Caches:
    """One store per watched kind, with the reflectors that fill it: one per selected namespace, or one for all."""

    def __init__(self, connection: Connection, *, namespaces: Sequence[str] = ()) -> None:
        self._connection = connection
        self._namespaces = tuple(namespaces) or ("",)
        self._stores: dict[Kind[Any], Store[Key, Any]] = {}
        self._selections: dict[Kind[Any], Selection] = {}
        self._reflectors: list[Reflector[Any]] = []

    def add(
        self,
        kind: Kind[T],
        *,
        labels: Mapping[str, str] | None = None,
        fields: str = "",
        indices: Mapping[str, Index[T]] | None = None,
        namespaces: Sequence[str] | None = None,
        keep: Callable[[T], bool] = lambda _obj: True,
    ) -> Store[Key, T]:
        """Watch a kind; `namespaces` overrides those of the whole operator, `keep` tells what is worth memory."""
        wanted = tuple(namespaces) if namespaces is not None else self._namespaces
        selection = Selection(wanted if kind.namespaced else ("",), dict(labels or {}), fields, keep)
        store: Store[Key, T] = kube_store(indices)
        self._stores[kind] = store
        self._selections[kind] = selection
        for namespace in selection.namespaces:
            self._reflectors.append(
                Reflector(
                    kind,
                    store,
                    self._connection,
                    namespace=namespace,
                    labels=selection.label_selector,
                    fields=fields,
                    keep=keep,
                )
            )
        return store

    def store(self, kind: Kind[T]) -> Store[Key, T]:
        """The store of a watched kind."""
        return self._stores[kind]

    @property
    def stores(self) -> Iterable[tuple[str, Store[Key, Any]]]:
        """Names and stores, as the manager takes them."""
        return [(kind.plural, store) for kind, store in self._stores.items()]

    @property
    def reflectors(self) -> Iterator[tuple[str, Reflector[Any]]]:
        """Names and sources, as the manager takes them."""
        return ((reflector.name, reflector) for reflector in self._reflectors)

    def live(self, kind: Kind[T], key: Key) -> T | None:
        """The object as last seen, if the kind is watched."""
        store = self._stores.get(kind)
        return None if store is None else store.get(key)

    def observe(self, kind: Kind[T], obj: T) -> None:
        """An answer of the server: newer than what the watch has brought so far, or ignored."""
        store = self._stores.get(kind)
        if store is not None and (self._selections[kind].covers(obj) or key_of(obj) in store):
            store.observe(obj)

    def forget(self, kind: Kind[T], obj: T) -> None:
        """The server said that the object is gone."""
        store = self._stores.get(kind)
        if store is not None:
            store.forget(obj)
