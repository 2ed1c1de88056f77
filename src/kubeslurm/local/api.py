"""A small client of the cluster's own apiserver: enough to apply, patch, list and follow objects."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2

from kubeslurm.local import network

Tree = dict[str, Any]
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
        url = f"https://{network.FABRIC}:{network.API_PORT}"
        self._http = httpx2.AsyncClient(base_url=url, verify=context, timeout=30, trust_env=False)

    async def wait(self) -> None:
        """Return when the apiserver serves."""
        while True:
            try:
                await self.call("GET", "/readyz")
            except ApiError:
                await asyncio.sleep(0.1)
            else:
                return

    async def call(self, method: str, path: str, body: Tree | None = None, kind: str = "application/json") -> bytes:
        content = json.dumps(body).encode() if body is not None else None
        try:
            response = await self._http.request(method, path, content=content, headers={"Content-Type": kind})
        except httpx2.TransportError as error:
            raise ApiError(0, repr(error)) from error
        if response.is_error:
            raise ApiError(response.status_code, response.text)
        return response.content

    async def apply(self, path: str, tree: Tree) -> None:
        """Server-side apply."""
        await self.call("PATCH", f"{path}?fieldManager=kubeslurm-local&force=true", tree, APPLY)

    async def watch(self, path: str, version: str) -> AsyncIterator[Tree]:
        """Changes from `version` on, until the apiserver ends the stream."""
        query = {"watch": "1", "resourceVersion": version, "allowWatchBookmarks": "true", "timeoutSeconds": "300"}
        try:
            async with self._http.stream("GET", path, params=query, timeout=330) as response:
                if response.is_error:
                    raise ApiError(response.status_code, "watch refused")
                async for line in response.aiter_lines():
                    yield json.loads(line)
        except httpx2.TransportError as error:
            raise ApiError(0, repr(error)) from error


class Mirror:
    """All objects of one collection, kept up to date."""

    def __init__(self, api: Api, path: str) -> None:
        self.api = api
        self.path = path
        self.objects: dict[str, Tree] = {}
        self.changed = asyncio.Event()

    async def run(self) -> None:
        """Follow the collection for ever."""
        while True:
            try:
                await self._follow()
            except (ApiError, ValueError):  # ValueError: a line cut short when the apiserver went away
                await asyncio.sleep(0.5)

    async def _follow(self) -> None:
        listed = json.loads(await self.api.call("GET", self.path))
        self.objects = {_key(item): item for item in listed["items"]}
        self.changed.set()
        async for event in self.api.watch(self.path, listed["metadata"]["resourceVersion"]):
            match event["type"]:
                case "ADDED" | "MODIFIED":
                    self.objects[_key(event["object"])] = event["object"]
                case "DELETED":
                    self.objects.pop(_key(event["object"]), None)
                case "ERROR":
                    return
            if event["type"] != "BOOKMARK":
                self.changed.set()


def _key(tree: Tree) -> str:
    return f"{tree['metadata'].get('namespace', '')}/{tree['metadata']['name']}"
