"""Certificates of our own: kept in a Secret that all replicas share, renewed in time, trusted by the API server."""

import asyncio
import base64
import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec
import structlog

from kubeslurm.api.kinds import MUTATING_WEBHOOKS, SECRET, VALIDATING_WEBHOOKS, Kind
from kubeslurm.api.meta import Tree
from kubeslurm.engine.key import Key
from kubeslurm.kube.errors import AlreadyExists, ApiError
from kubeslurm.webhooks.certificates import Bundle, due, make
from kubeslurm.webhooks.serving import Serving

POLL = 10.0
RETRY = 2.0
FILES = {"ca": "ca.crt", "cert": "tls.crt", "key": "tls.key"}
log = structlog.get_logger("kubeslurm.webhooks")


class Writer(Protocol):
    """The part of the client that keeping certificates needs."""

    async def get_tree(self, kind: Kind[Any], key: Key) -> Tree | None: ...

    async def create(self, tree: Tree) -> object: ...

    async def patch(self, kind: Kind[Any], key: Key, patch: Any, *, type: Any = "merge") -> None: ...  # noqa: A002


class Place(msgspec.Struct, frozen=True):
    """Where the certificates are kept, what they are for, and who must trust them."""

    secret: Key
    names: tuple[str, ...]
    configuration: str


def utc_now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


class Keeper:
    """Brings Secret, trust and served certificate together, again and again.

    Trust comes before use: the configurations learn the new authority first, and keep the old one for replicas that
    still serve the old certificate.
    """

    def __init__(
        self, kube: Writer, place: Place, serving: Serving, clock: Callable[[], dt.datetime] = utc_now
    ) -> None:
        self._kube = kube
        self._place = place
        self._serving = serving
        self._clock = clock
        self._trusted = b""  # stays trusted even if someone deletes the Secret it was in

    async def run(self) -> None:
        while True:
            try:
                await self.refresh()
                pause = POLL
            except ApiError as error:
                log.warning("certificates could not be kept", secret=str(self._place.secret), reason=str(error))
                pause = RETRY
            await asyncio.sleep(pause)

    async def refresh(self) -> None:
        """One look at everything."""
        bundle = await self._bundle()
        self._trusted = bundle.ca
        for kind in (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS):
            await self._trust(kind, bundle.ca)
        if self._serving.take(bundle.cert, bundle.key):
            log.info("serving certificate loaded", secret=str(self._place.secret))

    async def _bundle(self) -> Bundle:
        """The bundle in the Secret, or a new one that is there from now on."""
        secret = await self._kube.get_tree(SECRET, self._place.secret)
        held = _held(secret or {})
        if not due(held, self._place.names, self._clock()):
            return held
        fresh = await asyncio.to_thread(make, self._place.names, self._clock(), held.ca or self._trusted)
        if secret is None:
            try:
                await self._kube.create(self._secret(fresh))
            except AlreadyExists:  # another replica was faster
                return _held(await self._kube.get_tree(SECRET, self._place.secret) or {})
            return fresh
        # The version makes two replicas that renew at once conflict; the slower one looks again.
        patch = {"metadata": {"resourceVersion": secret["metadata"]["resourceVersion"]}, "data": _data(fresh)}
        await self._kube.patch(SECRET, self._place.secret, patch)
        return fresh

    def _secret(self, bundle: Bundle) -> Tree:
        metadata = {"name": self._place.secret.name, "namespace": self._place.secret.namespace}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": _data(bundle)}

    async def _trust(self, kind: Kind[Any], authorities: bytes) -> None:
        key = Key("", self._place.configuration)
        live = await self._kube.get_tree(kind, key)
        changes = trust_changes((live or {}).get("webhooks") or (), authorities)
        if changes:
            await self._kube.patch(kind, key, changes, type="json")
            log.info("authority written into the webhook configuration", kind=kind.kind, name=key.name)


def trust_changes(webhooks: Sequence[Tree], authorities: bytes) -> list[Tree]:
    """The JSON patch that makes every webhook trust these authorities; empty when all do."""
    wanted = base64.b64encode(authorities).decode()
    changes: list[Tree] = []
    for at, webhook in enumerate(webhooks):
        if webhook["clientConfig"].get("caBundle") != wanted:
            changes.append({"op": "test", "path": f"/webhooks/{at}/name", "value": webhook["name"]})
            changes.append({"op": "add", "path": f"/webhooks/{at}/clientConfig/caBundle", "value": wanted})
    return changes


def _held(secret: Tree) -> Bundle:
    data = secret.get("data") or {}
    try:
        return Bundle(**{field: base64.b64decode(data.get(name) or "") for field, name in FILES.items()})
    except ValueError:
        return Bundle(b"", b"", b"")


def _data(bundle: Bundle) -> dict[str, str]:
    return {name: base64.b64encode(getattr(bundle, field)).decode() for field, name in FILES.items()}
