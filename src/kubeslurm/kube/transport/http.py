"""Requests and watch streams over one aiohttp session, with the TLS, proxy and credentials of a kubeconfig.

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

from kubeslurm.engine.http import no_resend
from kubeslurm.kube.transport.batching import batched

AGENT = "kubeslurm"
BUFFER = 1 << 18  # bytes per read of the loop; with four times as many, those of a watch cost a fifth more CPU
KEEPALIVE = 30.0  # seconds that an idle connection is kept: less than any API server or load balancer keeps it
# After 20 s of silence the kernel probes the peer every 5 s; after 35 s, or when what was sent is not acknowledged for
# that long, the connection counts as broken.
SOCKET_OPTIONS = {"TCP_KEEPIDLE": 20, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 35_000}


class TransportError(Exception):
    """The server could not be reached, or the connection broke or went silent."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request, with the verb and kind that it is counted under."""

    verb: str
    kind: str
    path: str
    method: str = "GET"
    params: dict[str, str] = {}
    body: bytes = b""
    content_type: str = "application/json"


class Response(Protocol):
    """Status and headers, and then the body: whole, or in chunks as it arrives."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    async def read(self) -> bytes: ...
    def chunks(self) -> AsyncIterator[bytes]: ...


class Transport(Protocol):
    """What a Connection needs of the network."""

    def send(
        self, request: Request, *, timeout: float, silence: float | None = None
    ) -> AbstractAsyncContextManager[Response]: ...

    async def close(self) -> None: ...


class HttpResponse:
    """A response of aiohttp."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.read = response.read
        self._response = response

    def chunks(self) -> AsyncIterator[bytes]:
        chunks, connection = self._response.content.iter_any(), self._response.connection
        if connection is None or connection.transport is None:  # all of it has arrived already
            return chunks
        sock = connection.transport.get_extra_info("socket")

        def wake_at(size: int) -> None:
            with suppress(OSError):  # closed meanwhile
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)

        return batched(chunks, wake_at)


class HttpTransport:
    """Sends requests to one API server; the session is created in the event loop that first uses it."""

    def __init__(self, base_url: str, *, tls: ssl.SSLContext | None = None, auth: httpx2.Auth | None = None) -> None:
        self.base_url = base_url.rstrip("/")
        self._tls = tls
        self._auth = auth
        self._credential: str | None = None
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def send(self, request: Request, *, timeout: float, silence: float | None = None) -> AsyncIterator[Response]:
        """The response, its body still to be read; `timeout` bounds its start, `silence` every pause after that.

        A rejected credential is renewed once, in the way that the kubeconfig says.
        """
        try:
            response = await self._start(request, timeout, silence)
            try:
                yield HttpResponse(response)
            finally:
                response.close() if silence is not None else response.release()
        except aiohttp.ClientError as error:
            raise TransportError(f"{type(error).__name__} {error}".strip()) from error

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _start(self, request: Request, timeout: float, silence: float | None) -> aiohttp.ClientResponse:
        try:
            async with asyncio.timeout(timeout):
                response = await self._exchange(request, silence, rejected=False)
                if response.status == 401 and self._auth is not None:
                    response.close()
                    response = await self._exchange(request, silence, rejected=True)
        except TimeoutError as late:
            raise TransportError(f"no response within {timeout:.0f} s") from late
        if 300 <= response.status < 400:
            response.close()
            remedy = "set the address of the API server in the kubeconfig"
            raise TransportError(f"{self.base_url} redirects elsewhere ({response.status}): {remedy}")
        return response

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
            middlewares=() if request.method == "GET" else (no_resend,),
            timeout=aiohttp.ClientTimeout(total=None, sock_read=silence),
        )

    def _open(self) -> aiohttp.ClientSession:
        secure = self.base_url.startswith("https:")
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0,
                keepalive_timeout=KEEPALIVE,
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
        """The header that the kubeconfig's authentication sends; after a rejection, the one that it tries next."""
        if self._auth is None:
            return {}
        if self._credential is None or rejected:
            try:
                self._credential = await _credential(self._auth, self.base_url, rejected=rejected)
            # A missing token file; a program that is missing, fails, or prints something else than a credential.
            except (ConfigError, OSError, ValueError, LookupError, TypeError) as error:
                raise TransportError(
                    f"no credential for the API server: {type(error).__name__} {error}".strip()
                ) from error
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
    """A socket that notices a peer that is gone, as far as the kernel supports it."""
    family, kind, protocol, *_ = address
    created = socket.socket(family, kind, protocol)
    created.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in SOCKET_OPTIONS.items():
        with suppress(AttributeError, OSError):
            created.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return created


def _proxy(url: str) -> str | None:
    """The proxy that the environment sets for this server."""
    parsed = httpx2.URL(url)
    proxies = getproxies()
    proxy = proxies.get(parsed.scheme) or proxies.get("all")
    return None if proxy is None or proxy_bypass(parsed.host) else proxy
