"""Keeps a store equal to what the API server has: list, then watch, and start over after any failure."""

import asyncio
import random
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Generic, TypeVar

import msgspec
import structlog

from kubeslurm.api.kinds import Kind
from kubeslurm.api.resource import Resource
from kubeslurm.engine.key import Key
from kubeslurm.engine.limit import Backoff
from kubeslurm.engine.store import Store
from kubeslurm.kube import metrics
from kubeslurm.kube.errors import ApiError, Gone, Invalid, Status, Transient, error_of
from kubeslurm.kube.objects import decoder_of, key_of
from kubeslurm.kube.transport import stream
from kubeslurm.kube.transport.connection import Connection, Request
from kubeslurm.kube.transport.stream import INITIAL_EVENTS_END
from kubeslurm.kube.unreadable import Unreadables, unreadable, unreadable_store

T = TypeVar("T", bound=Resource)

PAGE = 500
LIST_TIMEOUT = 60.0
TURN = 0.005  # seconds of decoding after which other tasks get the loop; a yield per line costs 60 % more
SILENCE = (75.0, 90.0)  # seconds; bookmarks come about every minute, so a longer silence is a broken connection
SHORTEST_GOOD_WATCH = 5.0
RETRY_BASE, RETRY_LIMIT = 0.8, 30.0
EXPECTED = ("end", "expired", "rewound")

log = structlog.get_logger("kubeslurm.kube")


class HistoryReplaced(Exception):  # noqa: N818 (a state of the server, not a fault)
    """The server is at an older version than before, as after a restored backup."""


class Reflector(Generic[T]):
    """Fills one store from one collection: a kind in one namespace or in all, narrowed by selectors.

    Its state is a resourceVersion: with one, the watch goes on from there; without one, everything is streamed (or
    listed) again, and what no longer exists is removed from the store.
    """

    def __init__(
        self,
        kind: Kind[T],
        store: Store[Key, T],
        connection: Connection,
        *,
        namespace: str = "",
        selectors: Mapping[str, str] | None = None,
        keep: Callable[[T], bool] = lambda _obj: True,
        unreadables: Unreadables | None = None,
    ) -> None:
        self.name = f"{kind.plural}/{namespace}" if namespace else kind.plural
        self._kind = kind
        self._store = store
        self._connection = connection
        self._namespace = namespace
        self._path = kind.path(namespace)
        self._selectors = dict(selectors or {})
        self._decode: Callable[[msgspec.Raw | memoryview], T] = decoder_of(kind).decode
        self._keep = keep
        self._unreadables = unreadable_store() if unreadables is None else unreadables
        self._events = metrics.WATCH_EVENTS.labels(kind.kind)
        self._version = ""
        self._highest = 0  # the newest version of a list or bookmark; negative after the history was replaced
        self._watch_list = True
        self._listed: set[Key] | None = None  # keys shown so far while a list is being streamed
        self._turn_ends = 0.0
        store.await_source(self.name)

    async def run(self) -> None:
        """Follow until cancelled; after a failure, wait and try again."""
        loop = asyncio.get_running_loop()
        backoff = Backoff(RETRY_BASE, RETRY_LIMIT, jitter=0.5)
        while True:
            started = loop.time()
            cause, delay = await self._attempt()
            metrics.WATCH_RESTARTS.labels(self._kind.kind, cause).inc()
            if loop.time() - started >= SHORTEST_GOOD_WATCH:
                backoff.reset()
            pause = backoff.next()
            # It is normal that a watch ends or expires; only one that does so again at once has to wait.
            if cause in EXPECTED and backoff.failures == 1:
                pause = 0.0
            await asyncio.sleep(max(pause, delay))

    async def _attempt(self) -> tuple[str, float]:
        """Follow over one connection; returns why it ended and how long the server asks us to wait."""
        try:
            await self._follow()
        except Gone as error:
            self._version = ""
            log.info("watch starts over with a list", watch=self.name, reason=error.message)
            return "expired", 0.0
        except HistoryReplaced:
            self._version = ""
            log.warning("the server is at an older version than before; its state is taken over", watch=self.name)
            return "rewound", 0.0
        except ApiError as error:
            log.warning("watch interrupted", watch=self.name, reason=str(error))
            return error.reason or "error", error.after if isinstance(error, Transient) else 0.0
        return "end", 0.0

    async def _follow(self) -> None:
        if not self._version and (not self._watch_list or self._highest < 0):
            await self._list()
        try:
            await self._watch()
        except Invalid:
            if self._version or not self._watch_list:
                raise
            # Servers before 1.32 have watch-list off by default, and answer 4xx.
            self._watch_list = False

    async def _watch(self) -> None:
        params = self._selectors | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(random.randint(300, 600)),  # noqa: S311 (spreads load)
        }
        if self._version:
            self._listed = None
            params["resourceVersion"] = self._version
        else:
            self._listed = set()
            params |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        silence = random.uniform(*SILENCE)  # noqa: S311 (spreads load)
        request = Request(verb="watch", kind=self._kind.kind, path=self._path, params=params)
        async with self._connection.stream(request, silence=silence) as chunks:
            async for lines in stream.line_batches(chunks):
                self._events.inc(len(lines))
                for line in lines:
                    self._handle(line)
                    if monotonic() > self._turn_ends:
                        await self._yield()

    async def _yield(self) -> None:
        await asyncio.sleep(0)
        self._turn_ends = monotonic() + TURN

    def _handle(self, line: bytes) -> None:
        try:
            event = stream.frame(line)
            if event.type == "BOOKMARK":
                self._bookmark(stream.outline(event.object).metadata)
                return
            if event.type == "ERROR":
                raise error_of(msgspec.json.decode(event.object, type=Status))
        except msgspec.MsgspecError as error:
            self._report_undecodable(error, line)
            return
        obj = self._decoded(event.object, deleted=event.type == "DELETED")
        if obj is None:
            return
        version = obj.metadata.resourceVersion
        if self._listed is None:
            self._version = version
        if not self._belongs(obj):
            return
        if event.type == "DELETED":
            self._store.remove(key_of(obj), version=int(version))
            if self._listed is not None:
                self._listed.discard(key_of(obj))
        else:
            self._store.put(obj)
            if self._listed is not None:
                self._listed.add(key_of(obj))

    def _bookmark(self, metadata: stream.Outline.Meta) -> None:
        version = metadata.resourceVersion
        if self._listed is not None:
            if (metadata.annotations or {}).get(INITIAL_EVENTS_END) == "true":
                self._finish_list(version)
            return
        self._check_version(version)
        self._version = version

    def _finish_list(self, version: str) -> None:
        """The list is complete as of this version: what it did not show is gone."""
        listed, self._listed = self._listed or set(), None
        self._check_version(version)
        self._store.retain(listed, version=int(version), within=self._covers, source=self.name)
        for kind, key in tuple(self._unreadables.keys()):
            if kind == self._kind.kind and self._covers(key) and key not in listed:
                self._unreadables.remove((kind, key))
        self._version = version
        self._store.mark_synced(self.name)
        log.debug("listed", watch=self.name, objects=len(listed))

    def _check_version(self, version: str) -> None:
        """The versions of lists and bookmarks only grow, unless the server's history was replaced."""
        number = int(version)
        if number < max(self._highest, int(self._version or 0)):
            self._highest = -1
            raise HistoryReplaced
        self._highest = number

    async def _list(self) -> None:
        """List page by page: for servers without watch-list, and after the server's history was replaced."""
        replaced = self._highest < 0
        self._listed, self._highest = set(), max(self._highest, 0)
        found: list[T] = []
        params = self._selectors | {"limit": str(PAGE)}
        while True:
            request = Request(verb="list", kind=self._kind.kind, path=self._path, params=params)
            page = stream.page(await self._connection.read(request, timeout=LIST_TIMEOUT))
            for item in page.items or ():
                obj = self._decoded(item)
                if obj is not None and self._belongs(obj):
                    self._listed.add(key_of(obj))
                    found.append(obj) if replaced else self._store.put(obj)
                if monotonic() > self._turn_ends:
                    await self._yield()
            if not page.metadata.next_page:
                break
            params["continue"] = page.metadata.next_page
        if replaced:
            self._store.reset([*found, *(obj for obj in self._store if not self._covers(key_of(obj)))])
        self._finish_list(page.metadata.resourceVersion)

    def _covers(self, key: Key) -> bool:
        return not self._namespace or key.namespace == self._namespace

    def _belongs(self, obj: T) -> bool:
        """Whether to keep the object; one that is in the store stays, or a changed label would look like a delete."""
        return self._keep(obj) or key_of(obj) in self._store

    def _decoded(self, raw: msgspec.Raw | memoryview, *, deleted: bool = False) -> T | None:
        """The object; None if it cannot be decoded, in which case its last known state stays until it is deleted."""
        try:
            obj = self._decode(raw)
        except msgspec.MsgspecError as error:
            self._report_undecodable(error, bytes(raw))
            self._skip(raw, error, deleted=deleted)
            return None
        if len(self._unreadables):
            self._unreadables.remove((self._kind.kind, key_of(obj)))
        return obj

    def _skip(self, raw: msgspec.Raw | memoryview, error: Exception, *, deleted: bool) -> None:
        found = unreadable(self._kind, raw, error)
        if found is None:
            return
        if deleted:
            self._store.remove(found.key, version=int(found.version or 0))
            self._unreadables.remove((found.kind, found.key))
        else:
            self._unreadables.put(found)
        if self._listed is None:
            self._version = found.version or self._version
        elif deleted:
            self._listed.discard(found.key)
        else:
            self._listed.add(found.key)

    def _report_undecodable(self, error: Exception, raw: bytes) -> None:
        metrics.DECODE_FAILURES.labels(self._kind.kind).inc()
        log.error("object skipped: it cannot be decoded", watch=self.name, error=str(error), start=repr(raw[:200]))
