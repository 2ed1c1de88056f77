"""A small client for the cluster's API server: applies, patches, lists and watches objects."""

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
    """The API server refused a request, or could not be reached."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class ApiClient:
    """Sends requests with a client certificate."""

    def __init__(self, pki: Path, user: str) -> None:
        context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        context.load_cert_chain(pki / f"{user}.crt", pki / f"{user}.key")
        self.http = httpx2.AsyncClient(base_url=network.API_URL, verify=context, timeout=30, trust_env=False)

    async def wait_ready(self) -> None:
        """Wait until the API server is ready."""
        while True:
            with contextlib.suppress(ApiError):
                await self.request("GET", "/readyz")
                return
            await asyncio.sleep(0.1)

    async def request(
        self, method: str, path: str, body: Tree | None = None, content_type: str = "application/json"
    ) -> bytes:
        content = json.dumps(body).encode() if body is not None else None
        try:
            response = await self.http.request(method, path, content=content, headers={"Content-Type": content_type})
        except httpx2.TransportError as error:
            raise ApiError(0, repr(error)) from error
        if response.is_error:
            raise ApiError(response.status_code, response.text)
        return response.content

    async def apply(self, tree: Tree) -> None:
        """Server-side apply."""
        await self.request("PATCH", f"{path_of(tree)}?fieldManager=kubeslurm-local&force=true", tree, APPLY)


def path_of(tree: Tree) -> str:
    """The API path of an object."""
    version, metadata = tree["apiVersion"], tree["metadata"]
    namespace = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    plural = tree["kind"].lower() + ("es" if tree["kind"].endswith("s") else "s")
    return f"/{'apis' if '/' in version else 'api'}/{version}{namespace}/{plural}/{metadata['name']}"


class Informer(msgspec.Struct):
    """All objects of one collection, kept current by a watch."""

    api: ApiClient
    path: str
    objects: dict[str, Tree] = {}  # by uid
    changed: asyncio.Event = msgspec.field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """List and watch the collection, forever."""
        while True:
            try:
                await self._list_and_watch()
            except (ApiError, httpx2.TransportError, ValueError):  # ValueError: an incomplete line
                await asyncio.sleep(0.5)

    async def _list_and_watch(self) -> None:
        listed = json.loads(await self.api.request("GET", self.path))
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
