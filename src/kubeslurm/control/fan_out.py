"""The same act on many objects: what Kubernetes or Slurm answers about one does not hold up the others."""

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import structlog

from kubeslurm.engine import fan_out
from kubeslurm.kube.errors import ApiError, Fenced
from kubeslurm.slurm.errors import SlurmError

log = structlog.get_logger(__name__)
T = TypeVar("T")
Failure = ApiError | SlurmError


async def for_each(items: Iterable[T], act: Callable[[T], Awaitable[None]]) -> tuple[Failure, ...]:
    """Acts on all items with bounded concurrency; returns what failed."""
    failures: tuple[Failure, ...] = await fan_out.for_each(items, act, collect=(ApiError, SlurmError), fatal=Fenced)
    for failure in failures:
        log.info("one of many failed", reason=str(failure))
    return failures


async def each(items: Iterable[T], act: Callable[[T], Awaitable[None]]) -> tuple[str, ...]:
    """The same, with the failures in words."""
    return tuple(str(failure) for failure in await for_each(items, act))
