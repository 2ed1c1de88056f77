"""What happens when the API server rejects the children of an object: it is reported, and tried again seldom."""

from collections.abc import Awaitable, Callable

import msgspec

from kubeslurm.engine.controller import Requeue
from kubeslurm.engine.cooldown import Cooldown
from kubeslurm.kube.errors import ApiError, Forbidden, Invalid
from kubeslurm.report.refusal import Cause, Rejection, describe

REFUSED = (Invalid, Forbidden)
# Its own spec is watched; what else the server may look at, such as quotas and policies, is not.
PAUSE = 60.0
FIRST_COOLDOWN, LONGEST_COOLDOWN = 5.0, 300.0


async def rejection(act: Awaitable[None], daemon: str) -> Rejection | None:
    """Makes or changes children; returns why the API server rejects one. Other errors, such as timeouts, are raised."""
    try:
        await act
    except REFUSED as error:
        return rejection_of(error, daemon)
    return None


def again(rejected: Rejection | None) -> Requeue | None:
    """When to look once more at an object for which nothing else is awaited."""
    return Requeue(after=PAUSE) if rejected else None


def rejection_of(error: ApiError, daemon: str) -> Rejection:
    """The answer of the API server, without the HTTP around it."""
    causes = msgspec.convert(error.details.get("causes") or [], tuple[Cause, ...])
    return Rejection(error.message, str(error.details.get("kind", "")), causes, daemon)


def words(error: ApiError, daemon: str) -> str:
    """The rejection in a sentence."""
    return describe(rejection_of(error, daemon))


class Refusal(msgspec.Struct, frozen=True):
    """What the API server answered, and the state of the object that it answered for."""

    state: object
    message: str


class Refusals:
    """Refusals for objects that are reconciled often: while an object stays as it is, the server is asked seldom."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._cooldown: Cooldown[str] = Cooldown(clock, base=FIRST_COOLDOWN, limit=LONGEST_COOLDOWN)
        self._known: dict[str, Refusal] = {}

    def current(self, uid: str, state: object) -> str:
        """The refusal that holds for the object in this state; empty when the server is to be asked (again)."""
        known = self._known.get(uid)
        return known.message if known and known.state == state and self._cooldown.remaining(uid) else ""

    def add(self, uid: str, state: object, message: str) -> None:
        """The server has refused; the time until it is asked again doubles while the state stays the same."""
        known = self._known.get(uid)
        if known is not None and known.state != state:
            self._cooldown.end(uid)
        self._known[uid] = Refusal(state, message)
        self._cooldown.back_off(uid)

    def forget(self, uid: str) -> None:
        """The server has accepted, or the object is gone."""
        self._known.pop(uid, None)
        self._cooldown.end(uid)
