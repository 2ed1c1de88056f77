"""Rotates the webhook's certificate: kept in a Secret that all replicas share, trusted by the API server."""

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
from kubeslurm.webhooks.certificates import Bundle, issue, needs_renewal
from kubeslurm.webhooks.serving import ServingCertificate

POLL = 10.0
RETRY = 2.0
FILES = {"ca": "ca.crt", "cert": "tls.crt", "key": "tls.key"}
log = structlog.get_logger("kubeslurm.webhooks")


class Writer(Protocol):
    """The part of the client that the rotation needs."""

    async def get_tree(self, kind: Kind[Any], key: Key) -> Tree | None: ...

    async def create(self, tree: Tree) -> object: ...

    async def patch(self, kind: Kind[Any], key: Key, patch: Any, *, type: Any = "merge") -> None: ...  # noqa: A002


class RotationSettings(msgspec.Struct, frozen=True):
    """The Secret, the DNS names of the certificate, and the webhook configurations that must trust it."""

    secret: Key
    names: tuple[str, ...]
    configuration: str


def utc_now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


class CertificateRotation:
    """Keeps the Secret, the CA bundles of the webhook configurations and the served certificate in line.

    A new authority is written into the configurations before its certificate is served, and the old one stays there
    for replicas that still serve the old certificate.
    """

    def __init__(
        self,
        kube: Writer,
        settings: RotationSettings,
        serving: ServingCertificate,
        clock: Callable[[], dt.datetime] = utc_now,
    ) -> None:
        self._kube = kube
        self._settings = settings
        self._serving = serving
        self._clock = clock
        self._trusted = b""  # the last authorities: they stay trusted even if someone deletes the Secret

    async def run(self) -> None:
        while True:
            try:
                await self.refresh()
                pause = POLL
            except ApiError as error:
                log.warning(
                    "the certificate could not be checked or renewed",
                    secret=str(self._settings.secret),
                    reason=str(error),
                )
                pause = RETRY
            await asyncio.sleep(pause)

    async def refresh(self) -> None:
        """Checks everything once, and renews what is needed."""
        bundle = await self._bundle()
        self._trusted = bundle.ca
        for kind in (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS):
            await self._trust(kind, bundle.ca)
        if self._serving.load(bundle.cert, bundle.key):
            log.info("serving certificate loaded", secret=str(self._settings.secret))

    async def _bundle(self) -> Bundle:
        """The bundle in the Secret; a new one is written there first if needed."""
        secret = await self._kube.get_tree(SECRET, self._settings.secret)
        held = _decoded(secret or {})
        if not needs_renewal(held, self._settings.names, self._clock()):
            return held
        fresh = await asyncio.to_thread(issue, self._settings.names, self._clock(), held.ca or self._trusted)
        if secret is None:
            try:
                await self._kube.create(self._secret(fresh))
            except AlreadyExists:  # another replica was first
                return _decoded(await self._kube.get_tree(SECRET, self._settings.secret) or {})
            return fresh
        # With the version, one of two replicas that renew at once gets a conflict and reads the Secret again.
        patch = {"metadata": {"resourceVersion": secret["metadata"]["resourceVersion"]}, "data": _encoded(fresh)}
        await self._kube.patch(SECRET, self._settings.secret, patch)
        return fresh

    def _secret(self, bundle: Bundle) -> Tree:
        metadata = {"name": self._settings.secret.name, "namespace": self._settings.secret.namespace}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": _encoded(bundle)}

    async def _trust(self, kind: Kind[Any], authorities: bytes) -> None:
        key = Key("", self._settings.configuration)
        live = await self._kube.get_tree(kind, key)
        patch = ca_bundle_patch((live or {}).get("webhooks") or (), authorities)
        if patch:
            await self._kube.patch(kind, key, patch, type="json")
            log.info("CA bundle written into the webhook configuration", kind=kind.kind, name=key.name)


def ca_bundle_patch(webhooks: Sequence[Tree], authorities: bytes) -> list[Tree]:
    """The JSON patch that makes every webhook trust these authorities; empty when all do."""
    bundle = base64.b64encode(authorities).decode()
    patch: list[Tree] = []
    for at, webhook in enumerate(webhooks):
        if webhook["clientConfig"].get("caBundle") != bundle:
            patch.append({"op": "test", "path": f"/webhooks/{at}/name", "value": webhook["name"]})
            patch.append({"op": "add", "path": f"/webhooks/{at}/clientConfig/caBundle", "value": bundle})
    return patch


def _decoded(secret: Tree) -> Bundle:
    data = secret.get("data") or {}
    try:
        return Bundle(**{field: base64.b64decode(data.get(name) or "") for field, name in FILES.items()})
    except ValueError:
        return Bundle(b"", b"", b"")


def _encoded(bundle: Bundle) -> dict[str, str]:
    return {name: base64.b64encode(getattr(bundle, field)).decode() for field, name in FILES.items()}
