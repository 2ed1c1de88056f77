"""An API server in memory, with the watch protocol and its failures.

It is used only where time is virtual or a failure must be exact; everything else is tested on a real kube-apiserver.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2

from kubeslurm.kube.transport.connection import Connection
from tests.support.fake_storage import Address, Refusal, Storage, Tree
from tests.support.fake_transport import FakeTransport


def address_of(path: str) -> Address:
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 2:
        namespace, parts = parts[1], parts[2:]
    return Address(*(parts[0], namespace, *parts[1:], "", "")[:4])


class FakeApiServer(Storage):
    """Objects with versions, a history that can be compacted, watches that can be broken, frozen or refused."""

    def __init__(self) -> None:
        super().__init__()
        self.watch_list = True
        self.frozen = False
        self.failures: list[tuple[int, dict[str, str]]] = []
        self.refused = ""  # the plural of a kind of which nothing can be created or changed
        self.requests: list[httpx2.Request] = []
        self.delay = 0.0
        self.watches = 0
        self._cuts = 0
        self._raw: list[bytes] = []

    def connection(self, **options: Any) -> Connection:
        return Connection(FakeTransport(self), **options)

    def count(self, method: str, part: str = "") -> int:
        return sum(1 for request in self.requests if request.method == method and part in str(request.url))

    # What tests do to the server

    async def cut(self) -> None:
        """Break the connection of every open watch in the middle of a line."""
        self._cuts += 1
        await self.notify()

    async def send(self, line: bytes) -> None:
        """Send a raw line on every open watch."""
        self._raw.append(line + b"\n")
        await self.notify()

    async def bookmark(self, version: int | None = None) -> None:
        metadata = {"resourceVersion": str(version if version is not None else self.version)}
        event = {"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": metadata, "spec": {"containers": None}}}
        await self.send(encode(event))

    def fail(self, status: int, times: int = 1, **headers: str) -> None:
        """Answer the next requests with an error."""
        self.failures += [(status, headers)] * times

    # The server itself

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        if self.delay:
            await asyncio.sleep(self.delay)
        if self.failures:
            status, headers = self.failures.pop(0)
            if status == 0:
                raise httpx2.ConnectError("connection refused")
            return refusal(status, headers=headers)
        address = address_of(request.url.path)
        try:
            if self.refused == address.plural and request.method in ("POST", "PATCH"):
                raise Refusal(422, "Invalid")
            if request.url.params.get("watch") == "true":
                return self._watch(request, address)
            body = await (self._item(request, address) if address.name else self._collection(request, address))
        except Refusal as error:
            return refusal(error.status, error.reason)
        return httpx2.Response(201 if request.method == "POST" else 200, content=encode(body))

    async def _collection(self, request: httpx2.Request, address: Address) -> Tree:
        if request.method == "POST":
            return await self.create(address, json.loads(request.content))
        params = request.url.params
        token = params.get("continue", "")
        start, version = (int(part) for part in token.split(".")) if token else (0, self.version)
        if token and version < self.compacted:
            raise Refusal(410, "Expired")
        limit = int(params.get("limit", "0")) or 10**9
        items = self.selected(address)
        following = f"{start + limit}.{version}" if start + limit < len(items) else ""
        return {"metadata": {"resourceVersion": str(version), "continue": following}, "items": items[start:][:limit]}

    async def _item(self, request: httpx2.Request, address: Address) -> Tree:
        place = address._replace(subresource="")
        body: Any = json.loads(request.content) if request.content else {}
        kind, params = request.headers.get("Content-Type", ""), request.url.params
        if request.method == "GET":
            return self.read(place)
        if request.method == "DELETE":
            return await self.delete(place, body)
        if request.method == "PUT":
            return await self.replace(place, body)
        if "apply-patch" in kind:
            return await self.apply(address, body, params["fieldManager"], dry_run="dryRun" in params)
        if "json-patch" in kind:
            return await self.json_patch(place, body)
        return await self.merge_patch(place, body)

    def _watch(self, request: httpx2.Request, address: Address) -> httpx2.Response:
        params = request.url.params
        version = None
        if params.get("sendInitialEvents") != "true":
            version = int(params["resourceVersion"])
            if version < self.compacted:
                raise Refusal(410, "Expired")
        elif not self.watch_list:
            raise Refusal(422, "Invalid")
        return httpx2.Response(200, content=self._stream(request, address, version))

    async def _stream(self, request: httpx2.Request, address: Address, version: int | None) -> AsyncIterator[bytes]:
        cuts, raw_sent = self._cuts, len(self._raw)
        silence = request.extensions["timeout"]["read"]
        self.watches += 1
        try:
            if version is None:
                version = self.version
                for tree in self.selected(address):
                    yield encode({"type": "ADDED", "object": tree}) + b"\n"
                yield encode(initial_events_end(version)) + b"\n"
            while True:
                if self._cuts > cuts:
                    yield b'{"type":"MODIFIED","object":{"metadata":{"na'
                    raise httpx2.ReadError("connection reset")
                pending = [] if self.frozen else self._pending(address, version, raw_sent)
                for line, number in pending:
                    version = max(version, number)
                    yield line
                raw_sent = raw_sent if self.frozen else len(self._raw)
                if not pending:
                    await self._wait(silence)
        finally:
            self.watches -= 1

    def _pending(self, address: Address, version: int, raw_sent: int) -> list[tuple[bytes, int]]:
        if version < self.compacted:
            status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
            return [(encode({"type": "ERROR", "object": status}) + b"\n", self.version)]
        changes = [
            (encode({"type": change.type, "object": change.tree}) + b"\n", change.version)
            for change in self.history
            if change.version > version and change.address.is_in(address)
        ]
        return changes + [(line, 0) for line in self._raw[raw_sent:]]

    async def _wait(self, silence: float) -> None:
        try:
            async with asyncio.timeout(silence), self.changed:
                await self.changed.wait()
        except TimeoutError:
            raise httpx2.ReadTimeout("no data") from None


def encode(tree: Any) -> bytes:
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=False).encode()


def initial_events_end(version: int) -> Tree:
    metadata = {"resourceVersion": str(version), "annotations": {"k8s.io/initial-events-end": "true"}}
    return {"type": "BOOKMARK", "object": {"metadata": metadata}}


def refusal(status: int, reason: str = "", headers: dict[str, str] | None = None) -> httpx2.Response:
    body = {"kind": "Status", "status": "Failure", "code": status, "reason": reason, "message": f"refused: {reason}"}
    names = {name.replace("_", "-"): value for name, value in (headers or {}).items()}
    return httpx2.Response(status, content=encode(body), headers=names)


def pod(name: str, *, namespace: str = "ns", **metadata: Any) -> Tree:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace, **metadata}}


def config_map(name: str, data: dict[str, str], *, namespace: str = "ns") -> Tree:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
