"""The last known state of the objects of one kind, with indices."""

import asyncio
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

Listener = Callable[[K, T | None, T | None], None]
Index = Callable[[T], Iterable[str]]

TOMBSTONE_SECONDS = 60.0


class Tombstone(NamedTuple):
    """What is known of a deleted object, so that a late response does not bring it back."""

    identity: Hashable
    version: int
    expires: float


def _unversioned(_obj: object) -> int:
    return 0


def _anonymous(_obj: object) -> Hashable:
    return None


class Store(Generic[K, T]):
    """Frozen objects by key, filled by a watch or a poll and by the responses to our own writes.

    With `version` given, nothing older than what the store has is accepted, whatever its source; with `identity` given,
    an object known to be deleted does not return under its old identity.
    """

    def __init__(
        self,
        key: Callable[[T], K],
        *,
        indices: Mapping[str, Index[T]] | None = None,
        version: Callable[[T], int] = _unversioned,
        identity: Callable[[T], Hashable] = _anonymous,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._key = key
        self._version = version
        self._identity = identity
        self._clock = clock
        self._objects: dict[K, T] = {}
        self._indices = dict(indices or {})
        self._buckets: dict[tuple[str, str], dict[K, T]] = {}
        self._entries: dict[K, list[tuple[str, str]]] = {}
        self._tombstones: dict[K, Tombstone] = {}
        # By source: which keys its last list could have shown, and the version of that list.
        self._lists: dict[str, tuple[Callable[[K], bool], int]] = {}
        self._listeners: list[Listener[K, T]] = []
        self._awaited: set[str] = set()
        self._synced = asyncio.Event()

    def get(self, key: K) -> T | None:
        return self._objects.get(key)

    def __getitem__(self, key: K) -> T:
        return self._objects[key]

    def by(self, index: str, value: str) -> Collection[T]:
        """The objects that the index has under the value; a copy, safe to keep across an await."""
        if index not in self._indices:
            raise KeyError(f"no index {index!r}; this store has {sorted(self._indices)}")
        return tuple(self._buckets.get((index, value), {}).values())

    def count(self, index: str, value: str) -> int:
        """How many objects the index has under the value, without a copy of them."""
        return len(self._buckets.get((index, value), ()))

    def keys(self) -> Collection[K]:
        return self._objects.keys()

    def __iter__(self) -> Iterator[T]:
        return iter(tuple(self._objects.values()))

    def __len__(self) -> int:
        return len(self._objects)

    def __contains__(self, key: object) -> bool:
        return key in self._objects

    def subscribe(self, listener: Listener[K, T]) -> None:
        """Call the listener with (key, old, new) at every change, at once and on the same stack."""
        self._listeners.append(listener)

    def add_index(self, name: str, index: Index[T]) -> None:
        """Add an index, also over the objects that are here already."""
        self._indices[name] = index
        for key, obj in self._objects.items():
            for value in index(obj):
                self._add_entry(key, obj, (name, value))

    def put(self, obj: T) -> bool:
        """Accept an object unless a newer one is known; returns whether it was accepted."""
        key = self._key(obj)
        old = self._objects.get(key)
        if old is not None:
            if self._is_stale(old, obj):
                return False
        elif self._tombstones and self._is_deleted(key, obj):
            return False
        self._accept(key, old, obj)
        return True

    def remove(self, key: K, *, version: int = 0) -> bool:
        """Remove an object as of the given version; a newer one under the same key stays."""
        old = self._objects.get(key)
        if old is None:
            if version:
                self._add_tombstone(key, None, version)
            return False
        known = self._version(old)
        if version and known > version:
            return False
        self._add_tombstone(key, self._identity(old), max(version, known))
        self._drop(key, old)
        return True

    def replace(self, objs: Iterable[T], *, version: int = 0) -> None:
        """Make the store equal to a complete list; listeners are called for changed and for missing objects."""
        listed = set()
        for obj in objs:
            listed.add(self._key(obj))
            self.put(obj)
        self.retain(listed, version=version)
        self.mark_synced()

    def retain(
        self,
        listed: Collection[K],
        *,
        version: int = 0,
        within: Callable[[K], bool] = lambda _key: True,
        source: str = "",
    ) -> None:
        """Remove everything that a list taken at `version` did not show; what was written after the list stays.

        A source that lists only a part of the store tells by `within` which keys its list could have shown.
        """
        self._lists[source] = (within, version)
        for key in [key for key in self._objects if key not in listed and within(key)]:
            self.remove(key, version=version)

    def observe_write(self, obj: T) -> bool:
        """Accept the response to a write of our own, so that the next pass sees it."""
        if self._is_outdated(obj):
            return False
        return self.put(obj)

    def observe_delete(self, obj: T) -> None:
        """Accept the response to a delete of our own: the object is gone and does not return."""
        key = self._key(obj)
        old = self._objects.get(key)
        if old is None or self._identity(old) == self._identity(obj):
            self._add_tombstone(key, self._identity(obj), self._version(obj))
            if old is not None:
                self._drop(key, old)

    def reset(self, objs: Iterable[T]) -> None:
        """Make the store equal to a list of any version: the server's history was replaced, as by a restored backup."""
        self._tombstones.clear()
        self._lists.clear()
        fresh = {self._key(obj): obj for obj in objs}
        for key in [key for key in self._objects if key not in fresh]:
            self._drop(key, self._objects[key])
        for key, obj in fresh.items():
            if self._objects.get(key) != obj:
                self._accept(key, self._objects.get(key), obj)

    def await_source(self, source: str) -> None:
        """Count the store as synced only after this source has called mark_synced."""
        self._awaited.add(source)
        self._synced.clear()

    def mark_synced(self, source: str = "") -> None:
        self._awaited.discard(source)
        if not self._awaited:
            self._synced.set()

    @property
    def synced(self) -> bool:
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    def _is_stale(self, old: T, new: T) -> bool:
        version = self._version(new)
        if version:
            return version <= self._version(old)
        return old == new

    def _is_outdated(self, obj: T) -> bool:
        """Whether a list taken after this version did not show the object, so that it must have been deleted."""
        key, version = self._key(obj), self._version(obj)
        return key not in self._objects and any(
            version <= taken and within(key) for within, taken in self._lists.values() if taken
        )

    def _is_deleted(self, key: K, obj: T) -> bool:
        tombstone = self._tombstones.get(key)
        if tombstone is None:
            return False
        identity = self._identity(obj)
        if identity is not None and identity == tombstone.identity:
            return True
        version = self._version(obj)
        return bool(version) and version <= tombstone.version

    def _add_tombstone(self, key: K, identity: Hashable, version: int) -> None:
        now = self._clock()
        # Insertion order is expiry order, so the old ones are at the front.
        self._tombstones.pop(key, None)
        for deleted, tombstone in list(self._tombstones.items()):
            if tombstone.expires > now:
                break
            del self._tombstones[deleted]
        if identity is not None or version:
            self._tombstones[key] = Tombstone(identity, version, now + TOMBSTONE_SECONDS)

    def _accept(self, key: K, old: T | None, obj: T) -> None:
        self._objects[key] = obj
        if self._indices:
            self._reindex(key, obj)
        for listener in self._listeners:
            listener(key, old, obj)

    def _drop(self, key: K, old: T) -> None:
        del self._objects[key]
        self._remove_entries(key)
        for listener in self._listeners:
            listener(key, old, None)

    def _reindex(self, key: K, obj: T) -> None:
        entries = [(name, value) for name, index in self._indices.items() for value in index(obj)]
        if entries == self._entries.get(key):
            for entry in entries:
                self._buckets[entry][key] = obj
            return
        self._remove_entries(key)
        for entry in entries:
            self._add_entry(key, obj, entry)

    def _add_entry(self, key: K, obj: T, entry: tuple[str, str]) -> None:
        self._buckets.setdefault(entry, {})[key] = obj
        self._entries.setdefault(key, []).append(entry)

    def _remove_entries(self, key: K) -> None:
        for entry in self._entries.pop(key, ()):
            bucket = self._buckets.get(entry, {})  # an index may name a value twice
            bucket.pop(key, None)
            if not bucket:
                self._buckets.pop(entry, None)
