"""Kubernetes events about an object, as `kubectl describe` shows them: sent once, and counted when repeated."""

import asyncio
import time
import uuid
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import structlog

from kubeslurm.api import kinds
from kubeslurm.api.kinds import EVENT, Kind
from kubeslurm.api.meta import Tree
from kubeslurm.api.resource import Resource
from kubeslurm.engine.limit import TokenBucket
from kubeslurm.kube import metrics
from kubeslurm.kube.errors import ApiError, NotFound
from kubeslurm.kube.objects import micro_time
from kubeslurm.kube.transport.connection import PATCH_TYPES, Connection, Request

log = structlog.get_logger("kubeslurm.kube")

NOTE_LIMIT = 1024
PENDING_LIMIT = 1000
BUCKET_LIMIT = 4096
SERIES_SECONDS = 360.0
FLUSH_SECONDS = 30.0
PER_OBJECT_RATE, PER_OBJECT_BURST = 1 / 20, 25.0

_KIND_OF = {each.type: each for each in vars(kinds).values() if isinstance(each, Kind)}


class EventKey(NamedTuple):
    """Events with the same key are one series."""

    uid: str
    type: str
    reason: str
    note: str


class Series:
    """An event that was sent, and how often it has been repeated since."""

    def __init__(self, event: Tree, now: float) -> None:
        self.event = event
        self.count = 1
        self.sent = 1
        self.last = now
        self.last_time = event["eventTime"]


class Events:
    """Sends events in the background; neither waiting nor a lost event ever holds up a reconcile."""

    def __init__(
        self,
        connection: Connection,
        *,
        controller: str = "kubeslurm",
        instance: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection = connection
        self._controller = controller
        self._instance = (instance or f"{controller}-{uuid.uuid4().hex[:8]}")[:128]
        self._clock = clock
        self._series: dict[EventKey, Series] = {}
        self._buckets: dict[str, TokenBucket] = {}
        self._pending: deque[Tree] = deque()
        self._wake = asyncio.Event()

    def normal(self, obj: Resource, reason: str, message: str, *, action: str = "Reconcile") -> None:
        """Report something that went as it should."""
        self._add(obj, "Normal", reason, message, action)

    def warning(self, obj: Resource, reason: str, message: str, *, action: str = "Reconcile") -> None:
        """Report something that a user should look at."""
        self._add(obj, "Warning", reason, message, action)

    async def run(self) -> None:
        """Send until cancelled."""
        loop = asyncio.get_running_loop()
        flush_at = loop.time() + FLUSH_SECONDS
        while True:
            try:
                async with asyncio.timeout_at(flush_at):
                    await self._wake.wait()
            except TimeoutError:
                await self.flush_series()
                flush_at = loop.time() + FLUSH_SECONDS
            self._wake.clear()
            await self.flush()

    async def flush(self) -> None:
        """Send what is pending."""
        while self._pending:
            event = self._pending.popleft()
            await self._send("POST", EVENT.path(event["metadata"]["namespace"]), event)

    def _add(self, obj: Resource, type_: str, reason: str, message: str, action: str) -> None:
        note = message if len(message) <= NOTE_LIMIT else message[: NOTE_LIMIT - 1] + "…"
        key = EventKey(obj.metadata.uid, type_, reason, note)
        now = self._clock()
        series = self._series.get(key)
        if series is not None and now - series.last < SERIES_SECONDS:
            series.count, series.last, series.last_time = series.count + 1, now, micro_time()
            return
        if not self._bucket(obj.metadata.uid).allow():
            metrics.EVENTS_DROPPED.labels("rate").inc()
            return
        if len(self._pending) >= PENDING_LIMIT:
            metrics.EVENTS_DROPPED.labels("backlog").inc()
            return
        event = self._event(obj, key, action)
        self._series[key] = Series(event, now)
        self._pending.append(event)
        self._wake.set()

    def _bucket(self, uid: str) -> TokenBucket:
        if len(self._buckets) >= BUCKET_LIMIT:
            self._buckets.clear()
        return self._buckets.setdefault(uid, TokenBucket(PER_OBJECT_RATE, PER_OBJECT_BURST, self._clock))

    def _event(self, obj: Resource, key: EventKey, action: str) -> Tree:
        kind, metadata = _KIND_OF[type(obj)], obj.metadata
        regarding: dict[str, Any] = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "name": metadata.name,
            "uid": metadata.uid,
            "resourceVersion": metadata.resourceVersion,
        }
        if metadata.namespace:
            regarding["namespace"] = metadata.namespace
        return {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.kind,
            # kubectl looks for events of cluster-scoped objects in "default".
            "metadata": {
                "namespace": metadata.namespace or "default",
                "name": f"{metadata.name[:230]}.{uuid.uuid4().hex[:16]}",
            },
            "eventTime": micro_time(),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "action": action,
            "reason": key.reason,
            "type": key.type,
            "note": key.note,
            "regarding": regarding,
        }

    async def flush_series(self) -> None:
        """Send the counts of repeated events, and drop those that are no longer repeated."""
        now = self._clock()
        for key, series in list(self._series.items()):
            if series.count > series.sent:
                series.sent = series.count
                metadata = series.event["metadata"]
                change = {"series": {"count": series.count, "lastObservedTime": series.last_time}}
                if not await self._send("PATCH", EVENT.path(metadata["namespace"], metadata["name"]), change):
                    self._series.pop(key, None)
            elif now - series.last >= SERIES_SECONDS:
                self._series.pop(key, None)

    async def _send(self, method: str, path: str, body: Tree) -> bool:
        request = Request(
            verb="create" if method == "POST" else "patch",
            kind=EVENT.kind,
            method=method,
            path=path,
            body=msgspec.json.encode(body),
            content_type="application/json" if method == "POST" else PATCH_TYPES["merge"],
        )
        try:
            await self._connection.write(request)
        except NotFound:
            return False  # expired on the server, or its namespace is gone
        except ApiError as error:
            metrics.EVENTS_DROPPED.labels(error.reason or "error").inc()
            log.debug("event not sent", reason=str(error))
            return False
        return True
