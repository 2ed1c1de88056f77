"""What was applied last, so that an apply that would change nothing is not sent."""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from kubeslurm.api.kinds import Kind
from kubeslurm.api.resource import Resource
from kubeslurm.engine.key import Key
from kubeslurm.kube import ownership

PRUNE_FROM = 256  # records; fewer are not worth the walk


class Target(NamedTuple):
    """What an apply writes to: an object, or its status."""

    kind: Kind[Any]
    key: Key
    subresource: str


class Applied(msgspec.Struct, frozen=True):
    """The digest of one apply, and which fields the server then said were ours."""

    digest: bytes
    owned: Any


class AppliedRecords:
    """The last apply of each object under one field manager, for as long as a store holds the object."""

    def __init__(self, manager: str, live: Callable[[Kind[Any], Key], Resource | None]) -> None:
        self._manager = manager
        self._live = live
        self._records: dict[Target, Applied] = {}
        self._prune_at = PRUNE_FROM

    def __contains__(self, target: Target) -> bool:
        return target in self._records

    def __len__(self) -> int:
        return len(self._records)

    def is_current(self, target: Target, digest: bytes, live: Resource) -> bool:
        """Whether this very apply was the last one, and the live object still has our fields as it left them."""
        applied = self._records.get(target)
        if applied is None or applied.digest != digest:
            return False
        owned = ownership.owned_by(live, self._manager, target.subresource)
        return owned is not None and bool(owned == applied.owned)

    def add(self, target: Target, digest: bytes, result: Resource) -> None:
        """The apply was sent, and the server answered with this object."""
        if self._live(target.kind, target.key) is None:
            return  # no store holds it, so it is applied every time
        if len(self._records) >= self._prune_at:
            self._prune()
        self._records[target] = Applied(digest, ownership.owned_by(result, self._manager, target.subresource))

    def _prune(self) -> None:
        """Drops what is gone; the next walk comes when the rest has doubled, so that it costs little per record."""
        gone = [target for target in self._records if self._live(target.kind, target.key) is None]
        for target in gone:
            del self._records[target]
        self._prune_at = max(PRUNE_FROM, 2 * len(self._records))
