"""A slurmrestd without sockets: a table of answers, and a record of the requests."""

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import httpx2

from kubeslurm.slurm.rest.session import ConnectionLostError, NotSentError, Reply

Answer = tuple[int, Any] | Exception
EMPTY: dict[str, Any] = {"errors": [], "warnings": []}


class FakeSession:
    """Connections that end in a function."""

    def __init__(self, handler: Callable[[httpx2.Request], httpx2.Response | Awaitable[httpx2.Response]]) -> None:
        self._handler = handler

    async def send(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
        changes: bool,
    ) -> Reply:
        try:
            sent = httpx2.Request(method, url, params=dict(params), headers=dict(headers), content=body or None)
            made = self._handler(sent)
            response = await made if inspect.isawaitable(made) else made
        except (httpx2.ConnectError, httpx2.InvalidURL) as error:
            raise NotSentError(str(error)) from error
        except httpx2.RequestError as error:
            raise ConnectionLostError(str(error)) from error
        return Reply(response.status_code, response.content, sent.url.path)

    async def close(self) -> None:
        return


class Slurmrestd:
    """Answers by method and path (below `/slurm/<version>/`); hosts in `down` refuse the connection."""

    def __init__(self, *versions: str) -> None:
        self.versions = versions or ("v0.0.45",)
        self.answers: dict[str, Answer | Callable[[httpx2.Request], Answer]] = {}
        self.asked: list[str] = []
        self.bodies: list[Any] = []
        self.tokens: list[str] = []
        self.down: set[str] = set()

    @property
    def http(self) -> FakeSession:
        return FakeSession(self._answer)

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.host in self.down:
            raise httpx2.ConnectError("refused")
        _, api, version, path = request.url.raw_path.decode().split("/", 3)
        self.tokens.append(request.headers["X-SLURM-USER-TOKEN"])
        if version not in self.versions:
            return httpx2.Response(404, content=b"Unable to find requested URL endpoint.")
        asked = f"{request.method} {path if api == 'slurm' else f'{api}/{path}'}"
        if asked == "GET ping/" and asked not in self.answers:
            return httpx2.Response(200, content=json.dumps(EMPTY).encode())
        self.asked.append(f"{request.url.host} {asked}")
        self.bodies.append(json.loads(request.content) if request.content else None)
        answer = self.answers[asked]
        result = answer(request) if callable(answer) else answer
        if isinstance(result, Exception):
            raise result
        status, body = result
        return httpx2.Response(status, content=body if isinstance(body, bytes) else json.dumps(body).encode())
