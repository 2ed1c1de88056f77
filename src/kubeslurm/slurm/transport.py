"""HTTP to whichever slurmrestd answers: deadlines, fail-over, and the API version that each replica serves."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import httpx2
import msgspec

from kubeslurm.slurm.answers import judge
from kubeslurm.slurm.errors import NotFound, SlurmError, Unreachable

# Newest first. Each has been compared with the structs of models.py; older ones lack endpoints that we need.
VERSIONS = ("v0.0.46", "v0.0.45", "v0.0.44")
DEADLINE = 8.0
CONNECT = 1.0


class Transport:
    """Sends requests to one of several equal slurmrestd, staying with one that works."""

    def __init__(
        self,
        servers: Sequence[str],
        token: Callable[[], str],
        *,
        http: httpx2.AsyncBaseTransport | None = None,
        versions: Sequence[str] = VERSIONS,
    ) -> None:
        self.token = token
        self._servers: list[str] = []
        self._versions: dict[str, str] = {}
        self._candidates = tuple(versions)
        # Pods are reached directly, never through a proxy of the environment.
        self._http = httpx2.AsyncClient(transport=http, trust_env=False)
        self.use(servers)

    @property
    def servers(self) -> tuple[str, ...]:
        return tuple(self._servers)

    def use(self, servers: Sequence[str]) -> None:
        """Replaces the list of replicas; the one in use stays first if it is still listed."""
        current = self._servers[0] if self._servers else None
        self._servers = sorted((server.rstrip("/") for server in servers), key=lambda server: server != current)
        self._versions = {server: self._versions[server] for server in self._servers if server in self._versions}

    async def version(self) -> str:
        """The API version in use, found out if need be."""
        async with self._deadline(DEADLINE):
            await self._try_each("GET", "ping/", None, None)
        return self._versions[self._servers[0]]

    async def call(
        self,
        method: str,
        path: str,
        *,
        params: dict[str, str] | None = None,
        body: Any = None,
        deadline: float = DEADLINE,
    ) -> httpx2.Response:
        """One call to `/slurm/<version>/<path>`; raises the SlurmError that the answer stands for."""
        content = None if body is None else msgspec.json.encode(body)
        async with self._deadline(deadline):
            response = await self._try_each(method, path, params, content)
        failure = judge(method, response.status_code, response.content)
        if failure is not None:
            raise failure
        return response

    async def close(self) -> None:
        await self._http.aclose()

    def _deadline(self, seconds: float) -> "_Deadline":
        return _Deadline(seconds, self._rotate)

    async def _try_each(
        self, method: str, path: str, params: dict[str, str] | None, content: bytes | None
    ) -> httpx2.Response:
        trouble: SlurmError = Unreachable("no slurmrestd is known for this cluster")
        for _ in range(len(self._servers)):
            server = self._servers[0]
            try:
                version = self._versions.get(server) or await self._probe(server)
                response = await self._send(method, f"{server}/slurm/{version}/{path}", params, content)
            except httpx2.TransportError as error:
                trouble = Unreachable(f"{server} does not answer: {type(error).__name__} {error}".rstrip())
                self._rotate()
                # The request may have been carried out before the line broke: only reads go to the next replica then.
                if method != "GET" and not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
                    break
                continue
            if response.status_code == 404 and not response.content.startswith(b"{"):
                self._versions.pop(server, None)  # no such endpoint: another release may be running there by now
            return response
        raise trouble

    async def _probe(self, server: str) -> str:
        for version in self._candidates:
            response = await self._send("GET", f"{server}/slurm/{version}/ping/", None, None)
            failure = judge("GET", response.status_code, response.content)
            if failure is None:
                self._versions[server] = version
                return version
            if not isinstance(failure, NotFound):
                raise failure
        raise NotFound(
            f"{server} serves none of the API versions {', '.join(self._candidates)}; Slurm 25.11 or newer is needed"
        )

    async def _send(
        self, method: str, url: str, params: dict[str, str] | None, content: bytes | None
    ) -> httpx2.Response:
        headers = {"X-SLURM-USER-TOKEN": self.token(), "Accept": "application/json"}
        if content is not None:
            headers["Content-Type"] = "application/json"
        # The deadline of the whole call bounds reads and writes.
        timeout = httpx2.Timeout(None, connect=CONNECT)
        return await self._http.request(method, url, params=params, content=content, headers=headers, timeout=timeout)

    def _rotate(self) -> None:
        self._servers.append(self._servers.pop(0))


class _Deadline:
    """asyncio.timeout that speaks our errors and moves on to the next replica."""

    def __init__(self, seconds: float, expired: Callable[[], None]) -> None:
        self._seconds = seconds
        self._expired = expired
        self._timeout = asyncio.timeout(seconds)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError as late:
            self._expired()
            raise Unreachable(f"no answer from Slurm within {self._seconds:g} s") from late
