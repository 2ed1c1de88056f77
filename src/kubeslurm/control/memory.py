"""What a reconciler remembers about each object; it ends with the object."""

from collections.abc import Callable
from typing import Generic, TypeVar

from kubeslurm.engine.key import Key

T = TypeVar("T")


class Memories(Generic[T]):
    """One memory per object; a reconciler calls `forget` in the pass that finds the object gone."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._known: dict[Key, T] = {}

    def of(self, key: Key) -> T:
        """What is remembered about this object; new when there is nothing yet."""
        if key not in self._known:
            self._known[key] = self._make()
        return self._known[key]

    def forget(self, key: Key) -> None:
        """The object is gone."""
        self._known.pop(key, None)

    def __len__(self) -> int:
        return len(self._known)
