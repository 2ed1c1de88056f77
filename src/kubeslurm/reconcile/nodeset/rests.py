"""Slots whose workers keep failing: each is left alone for a while, longer every time."""

from collections.abc import Callable, Iterable

import msgspec

from kubeslurm.engine.limit import Backoff

FIRST_REST, LONGEST_REST = 1.0, 900.0


class Rest(msgspec.Struct):
    """How long one slot is left alone."""

    backoff: Backoff
    until: float = 0.0


class Rests:
    """All slots that rest, by NodeSet and by the name of their Slurm node."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._known: dict[tuple[str, str], Rest] = {}

    def begin(self, uid: str, slurm_name: str) -> None:
        """Another worker of the slot has failed."""
        rest = self._known.setdefault((uid, slurm_name), Rest(Backoff(FIRST_REST, LONGEST_REST)))
        rest.until = self._clock() + rest.backoff.next()

    def end(self, uid: str, slurm_names: Iterable[str]) -> None:
        """The workers of these slots are well."""
        for name in slurm_names:
            self._known.pop((uid, name), None)

    def current(self, uid: str) -> frozenset[str]:
        """The slots of a NodeSet for which no worker is made now."""
        now = self._clock()
        return frozenset(name for (owner, name), rest in self._known.items() if owner == uid and rest.until > now)

    def forget(self, uid: str) -> None:
        """The NodeSet is over."""
        self._known = {place: rest for place, rest in self._known.items() if place[0] != uid}
