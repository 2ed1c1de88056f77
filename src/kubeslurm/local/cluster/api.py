"""A small client of the cluster's own apiserver: enough to apply, patch, list and follow objects."""

import asyncio
import contextlib
import json
import ssl
from pathlib import Path

import httpx2
import msgspec

from kubeslurm.local.cluster import network
from kubeslurm.local.cluster.programs import Tree

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"


class ApiError(Exception):
    """The apiserver said no, or could not be asked."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class Api:
    """Requests with a client certificate, over the bridge."""

    def __init__(self, pki: Path, user: str) -> None:
        context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        context.load_cert_chain(pki / f"{user}.crt", pki / f"{user}.key")
        self.http = httpx2.AsyncClient(base_url=network.API_URL, verify=context, timeout=30, trust_env=False)

    async def wait(self) -> None:
        """Return when the apiserver serves."""
        while True:
            with contextlib.suppress(ApiError):
                await self.call("GET", "/readyz")
                return
            await asyncio.sleep(0.1)

    async def call(self, method: str, path: str, body: Tree | None = None, kind: str = "application/json") -> bytes:
        content = json.dumps(body).encode() if body is not None else None
        try:
            response = await self.http.request(method, path, content=content, headers={"Content-Type": kind})
        except httpx2.TransportError as error:
            raise ApiError(0, repr(error)) from error
        if response.is_error:
            raise ApiError(response.status_code, response.text)
        return response.content

    async def apply(self, tree: Tree) -> None:
        """Server-side apply."""
        await self.call("PATCH", f"{path_of(tree)}?fieldManager=kubeslurm-local&force=true", tree, APPLY)


def path_of(tree: Tree) -> str:
    """Where an object is served."""
    version, metadata = tree["apiVersion"], tree["metadata"]
    namespace = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    plural = tree["kind"].lower() + ("es" if tree["kind"].endswith("s") else "s")
    return f"/{'apis' if '/' in version else 'api'}/{version}{namespace}/{plural}/{metadata['name']}"


class Mirror(msgspec.Struct):
    """All objects of one collection, kept up to date."""

    api: Api
    path: str
    objects: dict[str, Tree] = {}  # by uid
    changed: asyncio.Event = msgspec.field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Follow the collection for ever."""
        while True:
            try:
                await self._follow()
            except (ApiError, httpx2.TransportError, ValueError):  # ValueError: a line cut short
                await asyncio.sleep(0.5)

    async def _follow(self) -> None:
        listed = json.loads(await self.api.call("GET", self.path))
        self.objects = {item["metadata"]["uid"]: item for item in listed["items"]}
        self.changed.set()
        query = {"watch": "1", "resourceVersion": listed["metadata"]["resourceVersion"], "timeoutSeconds": "300"}
        async with self.api.http.stream("GET", self.path, params=query, timeout=330) as response:
            if response.is_error:
                raise ApiError(response.status_code, "watch refused")
            async for line in response.aiter_lines():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                self.objects.pop(uid := event["object"]["metadata"]["uid"], None)
                if event["type"] != "DELETED":
                    self.objects[uid] = event["object"]
                self.changed.set()
