"""The same act on many objects: what Kubernetes or Slurm answers about one does not hold up the others."""

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import structlog

from kubeslurm.engine import fan_out
from kubeslurm.kube.errors import ApiError, Fenced
from kubeslurm.slurm.errors import SlurmError

log = structlog.get_logger(__name__)
T = TypeVar("T")
Error = ApiError | SlurmError


async def for_each(items: Iterable[T], act: Callable[[T], Awaitable[None]]) -> tuple[Error, ...]:
    """Acts on all items with bounded concurrency; returns what failed."""
    errors: tuple[Error, ...] = await fan_out.for_each(items, act, collect=(ApiError, SlurmError), fatal=Fenced)
    for error in errors:
        log.info("one of many failed", reason=str(error))
    return errors
