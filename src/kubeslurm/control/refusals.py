"""What becomes of an object whose children the API server refuses: it says so, and asks again only now and then."""

from collections.abc import Awaitable, Callable

import msgspec

from kubeslurm.engine.controller import Requeue
from kubeslurm.engine.limit import Backoff
from kubeslurm.kube.errors import ApiError, Forbidden, Invalid
from kubeslurm.report.conditions import Finding, Reason, trouble
from kubeslurm.report.refusal import Cause, refusal

REFUSED = (Invalid, Forbidden)
# Its own spec is watched; what else the server may look at, such as quotas and policies, is not.
PAUSE = 60.0
FIRST_REST, LONGEST_REST = 5.0, 300.0


async def finding(act: Awaitable[None], daemon: str) -> Finding | None:
    """Makes or changes children; a refusal is told instead of raised."""
    try:
        await act
    except REFUSED as error:
        return trouble(Reason.REFUSED, words(error, daemon))
    return None


def again(refused: Finding | None) -> Requeue | None:
    """When to look once more at an object for which nothing else is awaited."""
    return Requeue(after=PAUSE) if refused else None


def words(error: ApiError, daemon: str) -> str:
    """The refusal in a sentence."""
    causes = msgspec.convert(error.details.get("causes") or [], list[Cause])
    return refusal(error.message, str(error.details.get("kind", "")), causes, daemon)


class Refusal(msgspec.Struct):
    """Why children of one object, as it was then, are refused, and until when nobody asks again."""

    state: object
    backoff: Backoff
    message: str = ""
    until: float = 0.0


class Memory:
    """Refusals of objects that are looked at often, for whatever reason."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._known: dict[str, Refusal] = {}

    def recall(self, uid: str, state: object) -> str:
        """What the server said, while it is not to be asked again; an object that has changed is worth asking about."""
        known = self._known.get(uid)
        return known.message if known and known.state == state and known.until > self._clock() else ""

    def note(self, uid: str, state: object, message: str) -> None:
        known = self._known.get(uid)
        if known is None or known.state != state:
            known = self._known[uid] = Refusal(state, Backoff(FIRST_REST, LONGEST_REST))
        known.message = message
        known.until = self._clock() + known.backoff.next()

    def forget(self, uid: str) -> None:
        self._known.pop(uid, None)
