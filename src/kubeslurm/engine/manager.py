"""Starts sources, stores and controllers in order, and stops them in the reverse order."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Protocol

import structlog

from kubeslurm.engine import collector, metrics
from kubeslurm.engine.controller import Controller
from kubeslurm.engine.stall import StallMeter
from kubeslurm.engine.store import Store

log = structlog.get_logger("kubeslurm.engine")


class Runnable(Protocol):
    """Anything that runs until it is cancelled: a reflector, a poller, an HTTP server."""

    async def run(self) -> None: ...


class Manager:
    """Sources fill stores; once all are synced and the gate is open, controllers reconcile.

    The gate is what a replica waits for before it may act, such as leader election. A source that ends or fails ends
    the manager: a process that no longer sees the cluster must not go on acting on it.
    """

    def __init__(self, *, gate: Callable[[], Awaitable[None]] | None = None, grace: float = 20.0) -> None:
        self._gate = gate
        self._grace = grace
        self._background: list[tuple[str, Runnable]] = [("stall-meter", StallMeter())]
        self._stores: dict[str, Store[Any, Any]] = {}
        self._controllers: list[Controller] = []
        self._stop = asyncio.Event()

    def add_source(self, name: str, source: Runnable) -> None:
        """Something that fills stores, or serves requests; started first and stopped last."""
        self._background.append((name, source))

    def add_store(self, name: str, store: Store[Any, Any]) -> None:
        """A store that must be synced before any controller starts."""
        self._stores[name] = store
        metrics.STORE_SIZE.labels(name).set_function(lambda: len(store))

    def add_controller(self, controller: Controller) -> None:
        """A controller, started when all stores are synced and the gate is open."""
        self._controllers.append(controller)

    @property
    def unsynced(self) -> list[str]:
        """The stores that readiness still waits for."""
        return [name for name, store in self._stores.items() if not store.synced]

    def stop(self) -> None:
        """Ask for a graceful stop; run() returns when it is done."""
        self._stop.set()

    async def run(self) -> None:
        """Run until stop(), or raise what ended a source."""
        background = [asyncio.create_task(item.run(), name=name) for name, item in self._background]
        controllers = asyncio.create_task(self._run_controllers(), name="controllers")
        stop = asyncio.create_task(self._stop.wait(), name="stop")
        try:
            done, _ = await asyncio.wait([*background, controllers, stop], return_when=asyncio.FIRST_COMPLETED)
            if stop in done:
                await self._drain()
                return
            for task in done:
                if task in background or task.exception() is not None:
                    task.result()
                    raise RuntimeError(f"{task.get_name()} ended although it was not asked to stop")
        finally:
            await _cancel([controllers, stop, *background])

    async def _run_controllers(self) -> None:
        for name, store in self._stores.items():
            await store.wait_synced()
            log.debug("store synced", store=name, objects=len(store))
        collector.freeze()
        if self._gate is not None:
            await self._gate()
        log.info("controllers start", controllers=[controller.name for controller in self._controllers])
        async with asyncio.TaskGroup() as group:
            for controller in self._controllers:
                group.create_task(controller.run(), name=controller.name)
            await asyncio.Event().wait()

    async def _drain(self) -> None:
        log.info("stopping", grace=self._grace)
        await asyncio.gather(*(controller.drain(self._grace) for controller in self._controllers))


async def _cancel(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError, Exception):
            await task
