"""The pass that a log line belongs to: one variable per pass, read only when something is logged."""

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
    """A structlog processor that adds the current pass, if any."""
    running = current.get(None)
    if running is not None:
        event.update(controller=running.controller, key=str(running.key), reconcile_id=running.number)
    return event
