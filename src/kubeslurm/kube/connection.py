"""One authenticated connection pool to an API server: requests with deadlines, bounded and fenced writes, streams."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.request import getproxies, proxy_bypass

import httpx2
import msgspec
import yaml
from lightkube.config.client_adapter import ConnectionParams
from lightkube.config.kubeconfig import KubeConfig
from lightkube.core.exceptions import ConfigError

from kubeslurm.engine.limit import Backoff
from kubeslurm.kube import metrics
from kubeslurm.kube.errors import Throttled, Unavailable, error_from
from kubeslurm.kube.fence import Fence
from kubeslurm.kube.wire import Wire, WireError

READ_ATTEMPTS = 4
LONGEST_PAUSE = 5.0

APPLY = "application/apply-patch+yaml"
PATCH_TYPES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}


class ConfigurationError(Exception):
    """No cluster to talk to; the message says what to do."""


class Client(httpx2.AsyncClient):
    """An HTTP client that also knows a quicker way to stream, unless a proxy is in between."""

    wire: Wire | None = None


def connect(kubeconfig: Path | None = None, context: str | None = None) -> Client:
    """A client for the cluster of the kubeconfig; without one, of the pod's service account or of $KUBECONFIG."""
    try:
        config = KubeConfig.from_file(kubeconfig) if kubeconfig else KubeConfig.from_env()
        chosen = config.get(context)
        params = ConnectionParams().httpx_params(chosen) if chosen else {}
    except (ConfigError, OSError, yaml.YAMLError) as error:
        where = str(kubeconfig) if kubeconfig else os.environ.get("KUBECONFIG", "the default kubeconfig")
        raise ConfigurationError(
            f"{where} cannot be used: {error}; set KUBECONFIG to a file that `kubectl` accepts"
        ) from error
    if chosen is None:
        raise ConfigurationError(
            f"the kubeconfig has no context {context!r}; `kubectl config get-contexts` shows those it has"
            if context
            else "no cluster is configured; set KUBECONFIG or choose a current-context"
        )
    # Behind a proxy every watch holds a connection of the pool, so that must not be bounded.
    client = Client(**params, limits=httpx2.Limits(max_connections=None, keepalive_expiry=30))
    if not _has_proxy(client.base_url):
        client.wire = Wire(params["verify"], params["auth"])
    return client


def _has_proxy(url: httpx2.URL) -> bool:
    proxies = getproxies()
    return bool(proxies.get(url.scheme) or proxies.get("all")) and not proxy_bypass(url.host)


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request, with the two names it is counted under."""

    verb: str
    kind: str
    path: str
    method: str = "GET"
    params: dict[str, str] = {}
    body: bytes = b""
    content_type: str = "application/json"


class Connection:
    """The requests that everything else is made of; the only place that knows the HTTP library."""

    def __init__(
        self, http: httpx2.AsyncClient, *, fence: Fence | None = None, writes: int = 16, timeout: float = 10.0
    ) -> None:
        self._http = http
        self._fence = fence
        self._slots = asyncio.Semaphore(writes)
        self._timeout = timeout

    async def read(self, request: Request, *, timeout: float | None = None) -> bytes:
        """An idempotent request, tried again when the server is busy or does not answer."""
        backoff = Backoff(0.2, LONGEST_PAUSE, jitter=0.3)
        for _ in range(READ_ATTEMPTS - 1):
            try:
                return await self._send(request, timeout or self._timeout)
            except (Throttled, Unavailable) as error:
                if error.after > LONGEST_PAUSE:
                    raise
                await asyncio.sleep(max(backoff.next(), error.after))
        return await self._send(request, timeout or self._timeout)

    async def write(self, request: Request) -> bytes:
        """A write, sent once and only as leader: whether to repeat it is for the caller's next pass to decide."""
        async with self._slots:
            timeout = self._timeout if self._fence is None else self._fence.admit(self._timeout)
            return await self._send(request, timeout)

    async def write_unfenced(self, request: Request, *, timeout: float | None = None) -> bytes:
        """A write that does not depend on leadership: the Lease itself, or a review that changes nothing."""
        return await self._send(request, timeout or self._timeout)

    @asynccontextmanager
    async def stream(self, request: Request, *, silence: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """The bytes of a watch as they come; more than `silence` seconds without any counts as a dead connection."""
        sent = self._http.build_request(
            request.method, request.path, params=request.params, timeout=httpx2.Timeout(self._timeout, read=silence)
        )
        wire = self._http.wire if isinstance(self._http, Client) else None
        opened = wire.get(sent, timeout=self._timeout, silence=silence) if wire else _by_library(self._http, sent)
        try:
            async with opened as answer:
                metrics.REQUESTS.labels(request.verb, request.kind, str(answer.status)).inc()
                if answer.status != 200:
                    body = await answer.text()
                    raise error_from(answer.status, body, retry_after=answer.headers.get("retry-after", ""))
                yield answer.blocks()
        except (httpx2.HTTPError, WireError) as error:
            raise _unreachable(error) from error

    async def close(self) -> None:
        await self._http.aclose()

    async def _send(self, request: Request, timeout: float) -> bytes:
        code = "none"
        try:
            with metrics.REQUEST_SECONDS.labels(request.verb).time():
                async with asyncio.timeout(timeout):
                    answer = await self._http.request(
                        request.method,
                        request.path,
                        params=request.params,
                        content=request.body or None,
                        headers={"Content-Type": request.content_type} if request.body else None,
                    )
            code = str(answer.status_code)
        except TimeoutError:
            message = f"no answer to {request.method} {request.path} within {timeout:.0f} s"
            raise Unavailable(0, "Timeout", message) from None
        except httpx2.HTTPError as error:
            raise _unreachable(error) from error
        finally:
            metrics.REQUESTS.labels(request.verb, request.kind, code).inc()
        if answer.status_code >= 300:
            raise error_from(answer.status_code, answer.content, retry_after=answer.headers.get("Retry-After", ""))
        return answer.content


class LibraryAnswer:
    """The library's answer in the form of the wire's."""

    def __init__(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        self.headers = response.headers
        self.blocks = response.aiter_raw
        self.text = response.aread


@asynccontextmanager
async def _by_library(http: httpx2.AsyncClient, request: httpx2.Request) -> AsyncIterator[LibraryAnswer]:
    response = await http.send(request, stream=True)
    try:
        yield LibraryAnswer(response)
    finally:
        await response.aclose()


def _unreachable(error: Exception) -> Unavailable:
    return Unavailable(0, type(error).__name__, f"the API server cannot be reached: {error or type(error).__name__}")
