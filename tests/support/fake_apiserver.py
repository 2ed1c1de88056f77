"""An API server for tests without sockets: a line that ends in a handler, with the watch protocol and its troubles.

It stands in only where time is virtual or a failure must be exact; everything else is tested on a real kube-apiserver.
"""

import asyncio
import copy
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx2

from kubeslurm.kube.connection import Connection
from kubeslurm.kube.wire import Answer, Request, WireError

Tree = dict[str, Any]


class Address(NamedTuple):
    """Where an object lives; the name is empty for a collection."""

    plural: str
    namespace: str
    name: str
    subresource: str = ""


class Change(NamedTuple):
    version: int
    type: str
    address: Address
    tree: Tree


def address_of(path: str) -> Address:
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 2:
        namespace, parts = parts[1], parts[2:]
    return Address(*(parts[0], namespace, *parts[1:], "", "")[:4])


def field_set(tree: Any) -> Tree:
    """The managedFields form of what a tree sets; lists count as one field."""
    if not isinstance(tree, dict):
        return {}
    return {f"f:{name}": field_set(value) for name, value in tree.items()}


def merge(live: Tree, patch: Tree) -> Tree:
    result = dict(live)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            result[name] = merge(result.get(name) or {}, value)
        else:
            result[name] = value
    return result


def without(owned: Tree, patch: Tree) -> Tree:
    """What is left of a field set after someone else has written the patch."""
    result = dict(owned)
    for name, value in patch.items():
        field = f"f:{name}"
        if field in result:
            if isinstance(value, dict) and result[field]:
                result[field] = without(result[field], value)
            else:
                del result[field]
    return result


class FakeAnswer:
    """What a handler made, as a line gives it."""

    def __init__(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        self.headers = response.headers
        self.read = response.aread
        self.blocks = response.aiter_raw


class FakeLine:
    """A line to a function that answers requests."""

    def __init__(self, handler: Callable[[httpx2.Request], httpx2.Response | Awaitable[httpx2.Response]]) -> None:
        self._handler = handler

    @asynccontextmanager
    async def ask(self, request: Request, *, timeout: float, silence: float | None = None) -> AsyncIterator[Answer]:
        sent = httpx2.Request(
            request.method,
            f"http://fake{request.path}",
            params=request.params,
            content=request.body or None,
            headers={"Content-Type": request.content_type} if request.body else None,
            extensions={"timeout": {"read": silence, "connect": timeout}},
        )
        try:
            made = self._handler(sent)
            response = await made if inspect.isawaitable(made) else made
            try:
                yield FakeAnswer(response)
            finally:
                await response.aclose()
        except httpx2.HTTPError as error:
            raise WireError(f"{type(error).__name__} {error}") from error

    async def close(self) -> None:
        return


class FakeApiServer:
    """Objects with versions, a history that can be compacted, watches that can be cut, frozen or refused."""

    def __init__(self) -> None:
        self.version = 100
        self.objects: dict[Address, Tree] = {}
        self.history: list[Change] = []
        self.compacted = 0
        self.watch_list = True
        self.frozen = False
        self.failures: list[tuple[int, dict[str, str]]] = []
        self.refused = ""  # the collection in which nothing is made or changed
        self.requests: list[httpx2.Request] = []
        self.delay = 0.0
        self.watches = 0
        self._cuts = 0
        self._raw: list[tuple[int, bytes]] = []
        self._changed = asyncio.Condition()
        self._uid = 0

    def connection(self, **options: Any) -> Connection:
        return Connection(FakeLine(self), **options)

    def count(self, method: str, part: str = "") -> int:
        return sum(1 for request in self.requests if request.method == method and part in str(request.url))

    # What tests do to the server

    async def put(self, tree: Tree, plural: str = "pods") -> Tree:
        """Create or replace an object."""
        metadata = tree["metadata"]
        address = Address(plural, metadata.get("namespace", ""), metadata["name"])
        known = self.objects.get(address)
        if "uid" not in metadata:
            self._uid += 1
            metadata = metadata | {"uid": known["metadata"]["uid"] if known else f"uid-{self._uid}"}
        return await self._store(address, tree | {"metadata": metadata})

    async def remove(self, name: str, namespace: str = "ns", plural: str = "pods") -> None:
        address = Address(plural, namespace, name)
        self.version += 1
        tree = self.objects.pop(address)
        tree = tree | {"metadata": tree["metadata"] | {"resourceVersion": str(self.version)}}
        await self._record(Change(self.version, "DELETED", address, tree))

    async def edit(self, address: Address, patch: Tree, *, manager: str = "kubectl-edit") -> None:
        """Change an object as another manager would: the fields are no longer anyone else's."""
        live = copy.deepcopy(self.objects[address])
        for entry in live["metadata"].get("managedFields", []):
            entry["fieldsV1"] = without(entry["fieldsV1"], patch)
        live["metadata"].setdefault("managedFields", []).append(
            {"manager": manager, "operation": "Update", "apiVersion": live["apiVersion"], "fieldsV1": field_set(patch)}
        )
        await self._store(address, merge(live, patch))

    def compact(self) -> None:
        """Forget history: watches from older versions are told so."""
        self.compacted = self.version
        self.history.clear()

    async def cut(self) -> None:
        """Break every open watch in the middle of a line."""
        self._cuts += 1
        await self._notify()

    async def send(self, line: bytes) -> None:
        """Put a raw line into every open watch."""
        self._raw.append((self._cuts, line + b"\n"))
        await self._notify()

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
        if self.refused == address.plural and request.method in ("POST", "PATCH"):
            return refusal(422, "Invalid")
        if address.name:
            return await self._item(request, address)
        if request.method == "POST":
            return await self._create(request, address)
        if request.url.params.get("watch") == "true":
            return self._watch(request, address)
        return self._list(request, address)

    def _selected(self, address: Address) -> dict[Address, Tree]:
        return {
            place: tree
            for place, tree in self.objects.items()
            if place.plural == address.plural and address.namespace in ("", place.namespace)
        }

    def _list(self, request: httpx2.Request, address: Address) -> httpx2.Response:
        token = request.url.params.get("continue", "")
        start, version = (int(part) for part in token.split(".")) if token else (0, self.version)
        if token and version < self.compacted:
            return refusal(410, "Expired")
        limit = int(request.url.params.get("limit", "0")) or 10**9
        items = list(self._selected(address).values())
        following = f"{start + limit}.{version}" if start + limit < len(items) else ""
        body = {"metadata": {"resourceVersion": str(version), "continue": following}, "items": items[start:][:limit]}
        return httpx2.Response(200, content=encode(body))

    def _watch(self, request: httpx2.Request, address: Address) -> httpx2.Response:
        params = request.url.params
        if params.get("sendInitialEvents") == "true":
            if not self.watch_list:
                return refusal(422, "Invalid")
            return httpx2.Response(200, content=self._stream(request, address, None))
        version = int(params["resourceVersion"])
        if version < self.compacted:
            return refusal(410, "Expired")
        return httpx2.Response(200, content=self._stream(request, address, version))

    async def _stream(self, request: httpx2.Request, address: Address, version: int | None) -> AsyncIterator[bytes]:
        cuts, raw_sent = self._cuts, len(self._raw)
        silence = request.extensions["timeout"]["read"]
        self.watches += 1
        try:
            if version is None:
                version = self.version
                for tree in list(self._selected(address).values()):
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
            if change.version > version
            and change.address.plural == address.plural
            and address.namespace in ("", change.address.namespace)
        ]
        return changes + [(line, 0) for _, line in self._raw[raw_sent:]]

    async def _wait(self, silence: float) -> None:
        try:
            async with asyncio.timeout(silence), self._changed:
                await self._changed.wait()
        except TimeoutError:
            raise httpx2.ReadTimeout("no data") from None

    async def _create(self, request: httpx2.Request, address: Address) -> httpx2.Response:
        tree = json.loads(request.content)
        metadata = tree["metadata"]
        name = metadata.get("name") or f"{metadata['generateName']}{self.version}"
        place = Address(address.plural, address.namespace, name)
        if place in self.objects:
            return refusal(409, "AlreadyExists")
        self._uid += 1
        metadata = metadata | {"name": name, "namespace": address.namespace, "uid": f"uid-{self._uid}"}
        return httpx2.Response(201, content=encode(await self._store(place, tree | {"metadata": metadata})))

    async def _item(self, request: httpx2.Request, address: Address) -> httpx2.Response:
        place = address._replace(subresource="")
        live = self.objects.get(place)
        body: Any = json.loads(request.content) if request.content else {}
        kind = request.headers.get("Content-Type", "")
        if request.method == "PATCH" and "apply-patch" in kind:
            return await self._apply(request, address, body)
        if live is None:
            return refusal(404, "NotFound")
        if request.method == "GET":
            return httpx2.Response(200, content=encode(live))
        if request.method == "DELETE":
            return await self._delete(place, live, body)
        if request.method == "PUT":
            if body["metadata"].get("resourceVersion") != live["metadata"]["resourceVersion"]:
                return refusal(409, "Conflict")
            return httpx2.Response(200, content=encode(await self._store(place, body)))
        if "json-patch" in kind:
            return await self._json_patch(place, live, body)
        return httpx2.Response(200, content=encode(await self._store(place, merge(live, body))))

    async def _apply(self, request: httpx2.Request, address: Address, body: Tree) -> httpx2.Response:
        place = address._replace(subresource="")
        manager = request.url.params["fieldManager"]
        live = self.objects.get(place)
        if live is None:
            self._uid += 1
            live = {"metadata": {"uid": f"uid-{self._uid}"}}
        entry = {"manager": manager, "operation": "Apply", "apiVersion": body["apiVersion"]}
        if address.subresource:
            entry["subresource"] = address.subresource
        others = [each for each in live["metadata"].get("managedFields", []) if each | entry != each]
        applied = {name: value for name, value in body.items() if name not in ("apiVersion", "kind", "metadata")}
        result = merge(live, body)
        result["metadata"]["managedFields"] = [*others, entry | {"fieldsV1": field_set(applied)}]
        if request.url.params.get("dryRun"):
            return httpx2.Response(200, content=encode(result | {"dry": True}))
        if result == live:
            return httpx2.Response(200, content=encode(live))
        return httpx2.Response(200, content=encode(await self._store(place, result)))

    async def _json_patch(self, place: Address, live: Tree, operations: list[Tree]) -> httpx2.Response:
        metadata = dict(live["metadata"])
        for operation in operations:
            field = operation["path"].removeprefix("/metadata/")
            if operation["op"] == "test" and metadata.get(field) != operation["value"]:
                return refusal(422, "Invalid")
            if field == "resourceVersion" and operation["value"] != live["metadata"]["resourceVersion"]:
                return refusal(409, "Conflict")
            metadata[field] = operation["value"]
        tree = live | {"metadata": metadata}
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            self.objects[place] = tree
            await self.remove(place.name, place.namespace, place.plural)
            return httpx2.Response(200, content=encode(tree))
        return httpx2.Response(200, content=encode(await self._store(place, tree)))

    async def _delete(self, place: Address, live: Tree, options: Tree) -> httpx2.Response:
        uid = options.get("preconditions", {}).get("uid")
        if uid is not None and uid != live["metadata"]["uid"]:
            return refusal(409, "Conflict")
        grace = options.get("gracePeriodSeconds", 30 if place.plural == "pods" else 0)
        if live["metadata"].get("finalizers") or grace:
            metadata = live["metadata"] | {
                "deletionTimestamp": "2026-01-01T00:00:00Z",
                "deletionGracePeriodSeconds": grace,
            }
            return httpx2.Response(200, content=encode(await self._store(place, live | {"metadata": metadata})))
        await self.remove(place.name, place.namespace, place.plural)
        return httpx2.Response(200, content=encode({"kind": "Status", "status": "Success"}))

    async def _store(self, address: Address, tree: Tree) -> Tree:
        self.version += 1
        tree = tree | {"metadata": tree["metadata"] | {"resourceVersion": str(self.version)}}
        kind = "MODIFIED" if address in self.objects else "ADDED"
        self.objects[address] = tree
        await self._record(Change(self.version, kind, address, tree))
        return tree

    async def _record(self, change: Change) -> None:
        self.history.append(change)
        await self._notify()

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()


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
