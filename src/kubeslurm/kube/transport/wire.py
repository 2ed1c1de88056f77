"""How requests and watch streams travel: one aiohttp session with the TLS, proxy and credentials of a kubeconfig.

Measured on this path, aiohttp spends a seventh of the CPU per request of the library that reads the kubeconfig.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Protocol
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2
import msgspec
from lightkube.core.exceptions import ConfigError

from kubeslurm.engine.http import unrepeated
from kubeslurm.kube.transport.batching import gathered

AGENT = "kubeslurm"
BUFFER = 1 << 18  # what one read of the loop brings; with four times as much a watch's bytes cost a fifth more CPU
KEEP = 30.0  # seconds that an idle connection is kept: less than any API server or load balancer keeps it
# After 20 s of silence a peer is asked for a sign of life every 5 s, and after 35 s given up; so is one that does not
# confirm what was sent to it.
LIVENESS = {"TCP_KEEPIDLE": 20, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 35_000}


class WireError(Exception):
    """The server could not be reached, or the connection broke or fell silent."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request, with the two names it is counted under."""

    verb: str
    kind: str
    path: str
    method: str = "GET"
    params: dict[str, str] = {}
    body: bytes = b""
    content_type: str = "application/json"


class Answer(Protocol):
    """Status and headers, and then the body: whole, or as it comes."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    async def read(self) -> bytes: ...
    def blocks(self) -> AsyncIterator[bytes]: ...


class Line(Protocol):
    """What a Connection needs of the network."""

    def ask(
        self, request: Request, *, timeout: float, silence: float | None = None
    ) -> AbstractAsyncContextManager[Answer]: ...

    async def close(self) -> None: ...


class Response:
    """The library's answer."""

    def __init__(self, found: aiohttp.ClientResponse) -> None:
        self.status = found.status
        self.headers = found.headers
        self.read = found.read
        self._found = found

    def blocks(self) -> AsyncIterator[bytes]:
        blocks, connection = self._found.content.iter_any(), self._found.connection
        if connection is None or connection.transport is None:  # all of it has come already
            return blocks
        sock = connection.transport.get_extra_info("socket")

        def wake_at(size: int) -> None:
            with suppress(OSError):  # closed meanwhile
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)

        return gathered(blocks, wake_at)


class Wire:
    """Speaks to one API server; the session is made in the loop that first uses it."""

    def __init__(self, base_url: str, *, tls: ssl.SSLContext | None = None, auth: httpx2.Auth | None = None) -> None:
        self.base_url = base_url.rstrip("/")
        self._tls = tls
        self._auth = auth
        self._credential: str | None = None
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def ask(self, request: Request, *, timeout: float, silence: float | None = None) -> AsyncIterator[Answer]:
        """The answer, its body still to be read; `timeout` bounds its beginning, `silence` every pause after that.

        A rejected credential is renewed once, as the kubeconfig says how.
        """
        try:
            found = await self._begin(request, timeout, silence)
            try:
                yield Response(found)
            finally:
                found.close() if silence is not None else found.release()
        except aiohttp.ClientError as error:
            raise WireError(f"{type(error).__name__} {error}".strip()) from error

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _begin(self, request: Request, timeout: float, silence: float | None) -> aiohttp.ClientResponse:
        try:
            async with asyncio.timeout(timeout):
                found = await self._exchange(request, silence, rejected=False)
                if found.status == 401 and self._auth is not None:
                    found.close()
                    found = await self._exchange(request, silence, rejected=True)
        except TimeoutError as late:
            raise WireError(f"no answer within {timeout:.0f} s") from late
        if 300 <= found.status < 400:
            found.close()
            raise WireError(f"{self.base_url} points elsewhere ({found.status}): name the API server in the kubeconfig")
        return found

    async def _exchange(self, request: Request, silence: float | None, *, rejected: bool) -> aiohttp.ClientResponse:
        headers = await self._authorization(rejected=rejected)
        if request.body:
            headers["Content-Type"] = request.content_type
        return await (self._session or self._open()).request(
            request.method,
            self.base_url + request.path,
            params=request.params,
            headers=headers,
            data=request.body or None,
            allow_redirects=False,
            middlewares=() if request.method == "GET" else (unrepeated,),
            timeout=aiohttp.ClientTimeout(total=None, sock_read=silence),
        )

    def _open(self) -> aiohttp.ClientSession:
        secure = self.base_url.startswith("https:")
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0,
                keepalive_timeout=KEEP,
                ssl=self._tls if secure and self._tls else True,
                socket_factory=_socket,
            ),
            headers={"User-Agent": AGENT, "Accept": "application/json", "Accept-Encoding": "identity"},
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=BUFFER,
            proxy=_proxy(self.base_url),
        )
        return self._session

    async def _authorization(self, *, rejected: bool) -> dict[str, str]:
        """What the kubeconfig's own way to authenticate sends; after a rejection, what it tries next."""
        if self._auth is None:
            return {}
        if self._credential is None or rejected:
            try:
                self._credential = await _credential(self._auth, self.base_url, rejected=rejected)
            # A token file that is gone; a program that is missing, fails, or prints something else than a credential.
            except (ConfigError, OSError, ValueError, LookupError, TypeError) as error:
                raise WireError(f"no credential could be had: {type(error).__name__} {error}".strip()) from error
        return {"Authorization": self._credential} if self._credential else {}


async def _credential(auth: httpx2.Auth, url: str, *, rejected: bool) -> str:
    request = httpx2.Request("GET", url)
    flow = auth.async_auth_flow(request)
    try:
        sent = await anext(flow)
        if rejected:
            with suppress(StopAsyncIteration):
                sent = await flow.asend(httpx2.Response(401, request=request))
    finally:
        await flow.aclose()
    return str(sent.headers.get("Authorization", ""))


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """One that notices a peer that has vanished, as far as the system can be told to."""
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in LIVENESS.items():
        with suppress(AttributeError, OSError):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made


def _proxy(url: str) -> str | None:
    """The proxy that the environment names for this server."""
    parsed = httpx2.URL(url)
    proxies = getproxies()
    found = proxies.get(parsed.scheme) or proxies.get("all")
    return None if found is None or proxy_bypass(parsed.host) else found
