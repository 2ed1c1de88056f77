"""The stores of all watched kinds, the reflectors that fill them, and the answers to our own writes."""

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
from kubeslurm.kube.unreadable import unreadable_store

T = TypeVar("T", bound=Resource)


class CacheFilter(msgspec.Struct, frozen=True):
    """Which objects of a kind are kept in memory."""

    namespaces: tuple[str, ...] = ("",)
    labels: Mapping[str, str] = {}
    fields: str = ""
    keep: Callable[[Any], bool] = lambda _obj: True

    @property
    def selectors(self) -> dict[str, str]:
        """The parameters of a list or watch that narrow it."""
        labels = ",".join(f"{name}={value}" for name, value in self.labels.items())
        return {name: text for name, text in (("labelSelector", labels), ("fieldSelector", self.fields)) if text}

    def covers(self, obj: Resource) -> bool:
        """Whether the watch would show the object; a field selector cannot be evaluated here."""
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
        self._filters: dict[Kind[Any], CacheFilter] = {}
        self._reflectors: list[Reflector[Any]] = []
        self.unreadables = unreadable_store()

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
        """Watch a kind; `namespaces` overrides those of the whole operator, `keep` tells what to keep in memory."""
        chosen = tuple(namespaces) if namespaces is not None else self._namespaces
        cache_filter = CacheFilter(chosen if kind.namespaced else ("",), dict(labels or {}), fields, keep)
        store: Store[Key, T] = kube_store(indices)
        self._stores[kind] = store
        self._filters[kind] = cache_filter
        for namespace in cache_filter.namespaces:
            self._reflectors.append(
                Reflector(
                    kind,
                    store,
                    self._connection,
                    namespace=namespace,
                    selectors=cache_filter.selectors,
                    keep=keep,
                    unreadables=self.unreadables,
                )
            )
        return store

    def store(self, kind: Kind[T]) -> Store[Key, T]:
        """The store of a watched kind."""
        return self._stores[kind]

    @property
    def stores(self) -> Iterable[tuple[str, Store[Key, Any]]]:
        """Names and stores, for the manager."""
        return [(kind.plural, store) for kind, store in self._stores.items()]

    @property
    def reflectors(self) -> Iterator[tuple[str, Reflector[Any]]]:
        """Names and sources, for the manager."""
        return ((reflector.name, reflector) for reflector in self._reflectors)

    def live(self, kind: Kind[T], key: Key) -> T | None:
        """The object in its last known state, if the kind is watched."""
        store = self._stores.get(kind)
        return None if store is None else store.get(key)

    def observe_write(self, kind: Kind[T], obj: T) -> None:
        """Accept the server's answer to a write or a read, if it is newer than what the watch has shown."""
        store = self._stores.get(kind)
        if store is not None and (self._filters[kind].covers(obj) or key_of(obj) in store):
            store.observe_write(obj)

    def observe_delete(self, kind: Kind[T], obj: T) -> None:
        """Accept the server's answer that the object is gone."""
        store = self._stores.get(kind)
        if store is not None:
            store.observe_delete(obj)
