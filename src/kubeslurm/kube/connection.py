"""One authenticated connection pool to an API server: requests with deadlines, bounded and fenced writes, streams."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import msgspec
from lightkube.config.client_adapter import ConnectionParams
from lightkube.config.kubeconfig import KubeConfig

from kubeslurm.engine.limit import Backoff
from kubeslurm.kube import metrics
from kubeslurm.kube.errors import Throttled, Unavailable, error_from
from kubeslurm.kube.fence import Fence

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


def connect(kubeconfig: Path | None = None, context: str | None = None) -> httpx2.AsyncClient:
    """An HTTP client for the cluster of the kubeconfig; without one, of the pod's service account or of $KUBECONFIG."""
    config = KubeConfig.from_file(kubeconfig) if kubeconfig else KubeConfig.from_env()
    chosen = config.get(context)
    if chosen is None:
        raise ConfigurationError(
            f"the kubeconfig has no context {context!r}; `kubectl config get-contexts` shows those it has"
            if context
            else "no cluster is configured; set KUBECONFIG or choose a current-context"
        )
    # Every watch holds a connection for itself, so the pool must not be bounded.
    return httpx2.AsyncClient(
        **ConnectionParams().httpx_params(chosen), limits=httpx2.Limits(max_connections=None, keepalive_expiry=30)
    )


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
        try:
            answer = await self._http.send(sent, stream=True)
            try:
                metrics.REQUESTS.labels(request.verb, request.kind, str(answer.status_code)).inc()
                if answer.status_code != 200:
                    body = await answer.aread()
                    raise error_from(answer.status_code, body, retry_after=answer.headers.get("Retry-After", ""))
                yield answer.aiter_raw()
            finally:
                await answer.aclose()
        except httpx2.HTTPError as error:
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


def _unreachable(error: Exception) -> Unavailable:
    return Unavailable(0, type(error).__name__, f"the API server cannot be reached: {error or type(error).__name__}")
