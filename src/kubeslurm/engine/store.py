"""The last known state of one kind of object, with indices, readable without waiting."""

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
    """What is known of a deleted object, so that a late answer does not bring it back."""

    identity: Hashable
    version: int
    expires: float


def _unversioned(_obj: object) -> int:
    return 0


def _anonymous(_obj: object) -> Hashable:
    return None


class Store(Generic[K, T]):
    """Frozen objects by key, fed by a watch or a poll and by the answers to our own writes.

    With `version` given, nothing older than what is held is accepted, whoever brings it; with `identity` given, an
    object known to be deleted does not return under its old identity.
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
        self._lists: dict[str, tuple[Callable[[K], bool], int]] = {}  # what each source last listed, and when
        self._listeners: list[Listener[K, T]] = []
        self._awaited: set[str] = set()
        self._synced = asyncio.Event()

    def get(self, key: K) -> T | None:
        return self._objects.get(key)

    def __getitem__(self, key: K) -> T:
        return self._objects[key]

    def by(self, index: str, value: str) -> Collection[T]:
        """The objects that the index files under the value; a snapshot, safe to hold across an await."""
        if index not in self._indices:
            raise KeyError(f"no index {index!r}; this store has {sorted(self._indices)}")
        return tuple(self._buckets.get((index, value), {}).values())

    def count(self, index: str, value: str) -> int:
        """How many objects the index files under the value, without walking them."""
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
        """File objects under one more name; objects already here are filed now."""
        self._indices[name] = index
        for key, obj in self._objects.items():
            for value in index(obj):
                self._file(key, obj, (name, value))

    def put(self, obj: T) -> bool:
        """Accept an object unless something newer is known; says whether it was accepted."""
        key = self._key(obj)
        old = self._objects.get(key)
        if old is not None:
            if self._is_stale(old, obj):
                return False
        elif self._tombstones and self._is_buried(key, obj):
            return False
        self._accept(key, old, obj)
        return True

    def remove(self, key: K, *, version: int = 0) -> bool:
        """Drop an object as of the given version; something newer under the same key stays."""
        old = self._objects.get(key)
        if old is None:
            if version:
                self._bury(key, None, version)
            return False
        known = self._version(old)
        if version and known > version:
            return False
        self._bury(key, self._identity(old), max(version, known))
        self._drop(key, old)
        return True

    def replace(self, objs: Iterable[T], *, version: int = 0) -> None:
        """Make the store equal to a complete list: changed objects are told as such, missing ones as deleted."""
        seen = set()
        for obj in objs:
            seen.add(self._key(obj))
            self.put(obj)
        self.retain(seen, version=version)
        self.mark_synced()

    def retain(
        self,
        seen: Collection[K],
        *,
        version: int = 0,
        within: Callable[[K], bool] = lambda _key: True,
        source: str = "",
    ) -> None:
        """Drop everything that a list taken at `version` did not show; what was written after the list stays.

        A source that lists only a part of the store says which keys its list could have shown.
        """
        self._lists[source] = (within, version)
        for key in [key for key in self._objects if key not in seen and within(key)]:
            self.remove(key, version=version)

    def observe(self, obj: T) -> bool:
        """Take over the answer to a write of our own, so that the next pass sees it."""
        if self._is_past(obj):
            return False
        return self.put(obj)

    def forget(self, obj: T) -> None:
        """Take over the answer to a delete of our own: the object is gone for good."""
        key = self._key(obj)
        old = self._objects.get(key)
        if old is None or self._identity(old) == self._identity(obj):
            self._bury(key, self._identity(obj), self._version(obj))
            if old is not None:
                self._drop(key, old)

    def rebase(self, objs: Iterable[T]) -> None:
        """Become equal to the list whatever the versions: the history was replaced, as by a restored backup."""
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

    def _is_past(self, obj: T) -> bool:
        """Whether a list taken after this version did not show the object, so that it must have been deleted."""
        key, version = self._key(obj), self._version(obj)
        return key not in self._objects and any(
            version <= listed and within(key) for within, listed in self._lists.values() if listed
        )

    def _is_buried(self, key: K, obj: T) -> bool:
        tombstone = self._tombstones.get(key)
        if tombstone is None:
            return False
        identity = self._identity(obj)
        if identity is not None and identity == tombstone.identity:
            return True
        version = self._version(obj)
        return bool(version) and version <= tombstone.version

    def _bury(self, key: K, identity: Hashable, version: int) -> None:
        now = self._clock()
        # Insertion order is expiry order, so the old ones are at the front.
        self._tombstones.pop(key, None)
        for buried, tombstone in list(self._tombstones.items()):
            if tombstone.expires > now:
                break
            del self._tombstones[buried]
        if identity is not None or version:
            self._tombstones[key] = Tombstone(identity, version, now + TOMBSTONE_SECONDS)

    def _accept(self, key: K, old: T | None, obj: T) -> None:
        self._objects[key] = obj
        if self._indices:
            self._refile(key, obj)
        for listener in self._listeners:
            listener(key, old, obj)

    def _drop(self, key: K, old: T) -> None:
        del self._objects[key]
        self._unfile(key)
        for listener in self._listeners:
            listener(key, old, None)

    def _refile(self, key: K, obj: T) -> None:
        entries = [(name, value) for name, index in self._indices.items() for value in index(obj)]
        if entries == self._entries.get(key):
            for entry in entries:
                self._buckets[entry][key] = obj
            return
        self._unfile(key)
        for entry in entries:
            self._file(key, obj, entry)

    def _file(self, key: K, obj: T, entry: tuple[str, str]) -> None:
        self._buckets.setdefault(entry, {})[key] = obj
        self._entries.setdefault(key, []).append(entry)

    def _unfile(self, key: K) -> None:
        for entry in self._entries.pop(key, ()):
            bucket = self._buckets.get(entry, {})  # an index may name a value twice
            bucket.pop(key, None)
            if not bucket:
                self._buckets.pop(entry, None)
