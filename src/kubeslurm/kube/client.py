"""The client that changes Kubernetes objects, and reads those that no store has."""

import builtins
import hashlib
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

import msgspec

from kubeslurm.api.kinds import Kind, kind_of
from kubeslurm.api.meta import Tree
from kubeslurm.api.resource import Resource
from kubeslurm.engine.key import Key
from kubeslurm.kube import metrics, ownership
from kubeslurm.kube.applied import AppliedRecords, Target
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.errors import Conflict, Invalid, NotFound
from kubeslurm.kube.objects import decoder_of, key_of, key_of_tree
from kubeslurm.kube.transport import stream
from kubeslurm.kube.transport.connection import APPLY, PATCH_TYPES, Connection, Request

T = TypeVar("T", bound=Resource)

PAGE = "500"
LEGACY_MANAGERS = ("manager", "slurm-operator")
"""Field managers of the Go operator; what they own becomes ours when we apply."""

_encode = msgspec.json.Encoder(order="sorted").encode


class Answer(msgspec.Struct, frozen=True):
    """The part of an answer that tells its kind."""

    kind: str = ""


class Kube:
    """Writes under one field manager; every answer goes into the stores, so that the next pass sees it."""

    def __init__(
        self, connection: Connection, caches: Caches, *, manager: str, legacy: tuple[str, ...] = LEGACY_MANAGERS
    ) -> None:
        self.connection = connection
        self.caches = caches
        self.manager = manager
        self._legacy = legacy
        self._applied = AppliedRecords(manager, caches.live)

    def named(self, manager: str) -> "Kube":
        """The same client under another field manager."""
        return Kube(self.connection, self.caches, manager=manager, legacy=self._legacy)

    async def apply(self, tree: Tree, *, status: bool = False, dry_run: bool = False) -> Tree:
        """Server-side apply, skipped when neither the desired tree nor our fields on the live object have changed.

        When someone else changes or removes a field of ours, the server takes it out of our entry in managedFields:
        that entry tells whether a repair is needed, and values that the server only rewrote do not look like an edit.
        An object that no store has, or whose view has no managedFields, is applied every time.
        """
        kind, key, subresource = kind_of(tree), key_of_tree(tree), "status" if status else ""
        target = Target(kind, key, subresource)
        body = _encode(tree)
        request = self._patch(kind, key, body, APPLY, subresource, verb="apply")
        if dry_run:
            return _tree(await self._force(request, {"dryRun": "All"}))
        digest = hashlib.blake2b(body, digest_size=16).digest()
        live = self.caches.live(kind, key)
        if live is not None and self._applied.is_current(target, digest, live):
            metrics.APPLIES_SKIPPED.labels(kind.kind).inc()
            return _as_tree(live)
        if live is not None and target not in self._applied and ownership.written_by(live, self._legacy, subresource):
            await self.take_over(kind, key, status=status)
        try:
            raw = await self._force(request, {})
        except NotFound as error:
            if not status:
                raise
            # Deleted during this pass; the next one sees that.
            raise Conflict(409, "Conflict", f"{kind.kind} {key} is gone: {error.message}") from error
        self._applied.add(target, digest, self._observe(kind, raw))
        return _tree(raw)

    async def create(self, tree: Tree) -> Resource:
        """Create an object; AlreadyExists if there is one of that name."""
        kind, key = kind_of(tree), key_of_tree(tree)
        if kind.namespaced and not key.namespace:
            raise ValueError(f"{kind.kind} {key.name!r} needs a namespace")
        raw = await self.connection.write(
            Request(
                verb="create",
                kind=kind.kind,
                method="POST",
                path=kind.path(key.namespace),
                params={"fieldManager": self.manager},
                body=_encode(tree),
            )
        )
        created: Resource = self._observe(kind, raw)
        return created

    async def patch(
        self,
        kind: Kind[Any],
        key: Key,
        patch: Tree | builtins.list[Tree],
        *,
        type: Literal["merge", "json", "strategic"] = "merge",  # noqa: A002
        subresource: str = "",
    ) -> None:
        """Change single fields, whichever manager owns them."""
        raw = await self.connection.write(self._patch(kind, key, _encode(patch), PATCH_TYPES[type], subresource))
        if subresource in ("", "status"):
            self._observe(kind, raw)

    async def delete(self, kind: Kind[Any], key: Key, *, uid: str | None = None, grace: int | None = None) -> None:
        """Delete the object, with a uid only that very one; it is no error if it is gone already.

        Worker pods are deleted only through reconcile/nodeset/removal.py, which knows about their jobs.
        """
        options: Tree = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        known = self.caches.live(kind, key)
        request = Request(verb="delete", kind=kind.kind, method="DELETE", path=_path(kind, key), body=_encode(options))
        try:
            raw = await self.connection.write(request)
        except NotFound:
            if known is not None and uid in (None, known.metadata.uid):
                self.caches.observe_delete(kind, known)
            return
        self._observe_delete(kind, raw, known)

    async def get(self, kind: Kind[T], key: Key) -> T | None:
        """The object as the server has it now; None if it does not exist."""
        try:
            raw = await self.connection.read(Request(verb="get", kind=kind.kind, path=_path(kind, key)))
        except NotFound:
            return None
        return self._observe(kind, raw)

    async def get_tree(self, kind: Kind[Any], key: Key, *, subresource: str = "") -> Tree | None:
        """The whole object, with the fields that its view leaves out."""
        try:
            raw = await self.connection.read(Request(verb="get", kind=kind.kind, path=_path(kind, key, subresource)))
        except NotFound:
            return None
        return _tree(raw)

    async def list(
        self, kind: Kind[T], namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> builtins.list[T]:
        """All objects of a kind as the server has them now, read page by page."""
        params = {"limit": PAGE}
        if labels:
            params["labelSelector"] = ",".join(f"{name}={value}" for name, value in labels.items())
        decode = decoder_of(kind).decode
        found: list[T] = []
        while True:
            raw = await self.connection.read(
                Request(verb="list", kind=kind.kind, path=kind.path(namespace), params=params)
            )
            page = stream.page(raw)
            found.extend(decode(item) for item in page.items or ())
            if not page.metadata.next_page:
                return found
            params = params | {"continue": page.metadata.next_page}

    async def add_finalizer(self, kind: Kind[T], obj: T, name: str) -> T:
        """Hold back the deletion of the object until remove_finalizer; Conflict if it has changed since it was read."""
        if name in obj.metadata.finalizers:
            return obj
        return await self._set_finalizers(kind, obj, [*obj.metadata.finalizers, name])

    async def remove_finalizer(self, kind: Kind[T], obj: T, name: str) -> None:
        """Let the deletion go on; it is no error if the object is gone already."""
        if name not in obj.metadata.finalizers:
            return
        rest = [each for each in obj.metadata.finalizers if each != name]
        try:
            await self._set_finalizers(kind, obj, rest)
        except NotFound:
            self.caches.observe_delete(kind, obj)
            return
        if obj.metadata.deleting and not rest:
            self.caches.observe_delete(kind, obj)

    async def take_over(self, kind: Kind[Any], key: Key, *, status: bool = False) -> bool:
        """Make the fields of a former field manager ours, so that leaving one out later removes it."""
        live = await self.get_tree(kind, key)
        subresource = "status" if status else ""
        operations = live and ownership.migration(live, self._legacy, self.manager, subresource=subresource)
        if not operations:
            return False
        await self.patch(kind, key, operations, type="json")
        return True

    async def _set_finalizers(self, kind: Kind[T], obj: T, finalizers: builtins.list[str]) -> T:
        operations: list[Tree] = [
            {"op": "test", "path": "/metadata/resourceVersion", "value": obj.metadata.resourceVersion},
            {"op": "add", "path": "/metadata/finalizers", "value": finalizers},
        ]
        request = self._patch(kind, key_of(obj), _encode(operations), PATCH_TYPES["json"])
        try:
            raw = await self.connection.write(request)
        except Invalid as error:
            # A failed test is reported as an invalid patch; it is a conflict like any other.
            raise Conflict(409, "Conflict", f"{kind.kind} {key_of(obj)} changed meanwhile: {error.message}") from error
        return self._observe(kind, raw)

    def _patch(
        self, kind: Kind[Any], key: Key, body: bytes, content_type: str, subresource: str = "", verb: str = "patch"
    ) -> Request:
        return Request(
            verb=verb,
            kind=kind.kind,
            method="PATCH",
            path=_path(kind, key, subresource),
            params={"fieldManager": self.manager},
            body=body,
            content_type=content_type,
        )

    async def _force(self, request: Request, params: dict[str, str]) -> bytes:
        """Apply against other owners too: what we declare is ours."""
        forced = msgspec.structs.replace(request, params=request.params | {"force": "true"} | params)
        return await self.connection.write(forced)

    def _observe(self, kind: Kind[T], raw: bytes) -> T:
        """The object of an answer, as a view: decoding whole trees as well took a tenth of the operator's CPU."""
        obj: T = decoder_of(kind).decode(raw)
        self.caches.observe_write(kind, obj)
        return obj

    def _observe_delete(self, kind: Kind[Any], raw: bytes, known: Resource | None) -> None:
        """The answer is a Status, or the object: still there with a deletionTimestamp, or in its last state."""
        if msgspec.json.decode(raw, type=Answer).kind == "Status":
            if known is not None:
                self.caches.observe_delete(kind, known)
            return
        obj = decoder_of(kind).decode(raw)
        metadata = obj.metadata
        if metadata.deleting and (metadata.finalizers or metadata.deletionGracePeriodSeconds):
            self.caches.observe_write(kind, obj)
        else:
            self.caches.observe_delete(kind, obj)


def _path(kind: Kind[Any], key: Key, subresource: str = "") -> str:
    if kind.namespaced and not key.namespace:
        raise ValueError(f"{kind.kind} {key.name!r} needs a namespace")
    return kind.path(key.namespace, key.name, subresource)


def _tree(raw: bytes) -> Tree:
    tree: Tree = msgspec.json.decode(raw)
    return tree


def _as_tree(obj: Resource) -> Tree:
    tree: Tree = msgspec.to_builtins(obj)
    return tree
