"""Which pass a log line belongs to. One variable is set for each pass, and read only when something is logged."""

from collections.abc import MutableMapping
from contextvars import ContextVar
from typing import Any, NamedTuple

from kubeslurm.engine.key import Key


class Pass(NamedTuple):
    """One call of a reconcile function."""

    controller: str
    key: Key
    number: int


current: ContextVar[Pass] = ContextVar("kubeslurm_pass")


def add_pass(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A structlog processor: says in which pass something was logged, if in any."""
    now = current.get(None)
    if now is not None:
        event.update(controller=now.controller, key=str(now.key), reconcile_id=now.number)
    return event
