"""Requests to an API server: with deadlines, writes bounded and fenced, and watch streams."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import yaml
from lightkube.config.client_adapter import ConnectionParams
from lightkube.config.kubeconfig import KubeConfig
from lightkube.core.exceptions import ConfigError

from kubeslurm.engine.limit import Backoff
from kubeslurm.kube import metrics
from kubeslurm.kube.errors import ApiError, Terminating, Throttled, Unavailable, error_from
from kubeslurm.kube.fence import Fence
from kubeslurm.kube.transport.http import HttpTransport, Request, Response, Transport, TransportError
from kubeslurm.kube.transport.terminating import TerminatingNamespaces

__all__ = ["APPLY", "PATCH_TYPES", "ConfigurationError", "Connection", "Request", "connect"]

READ_ATTEMPTS = 4
LONGEST_PAUSE = 5.0

APPLY = "application/apply-patch+yaml"
PATCH_TYPES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}


class ConfigurationError(Exception):
    """There is no cluster to connect to; the message says what to do."""


def connect(kubeconfig: Path | None = None, context: str | None = None) -> HttpTransport:
    """A transport to the cluster of the kubeconfig; without one, of the pod's service account or of $KUBECONFIG."""
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
    return HttpTransport(params["base_url"], tls=params["verify"], auth=params["auth"])


class Connection:
    """Sends requests with deadlines; writes are limited in number and only sent as leader."""

    def __init__(
        self, transport: Transport, *, fence: Fence | None = None, writes: int = 16, timeout: float = 10.0
    ) -> None:
        self._transport = transport
        self._fence = fence
        self._slots = asyncio.Semaphore(writes)
        self._timeout = timeout
        self._terminating = TerminatingNamespaces(time.monotonic)

    async def read(self, request: Request, *, timeout: float | None = None) -> bytes:
        """An idempotent request, tried again when the server is busy or does not respond."""
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
        """A write, sent once and only as leader: the caller's next pass decides whether to repeat it."""
        self._terminating.check(request)
        async with self._slots:
            timeout = self._timeout if self._fence is None else self._fence.admit(self._timeout)
            try:
                return await self._send(request, timeout)
            except Terminating:
                self._terminating.add(request)
                raise

    async def write_unfenced(self, request: Request, *, timeout: float | None = None) -> bytes:
        """A write that does not depend on leadership: the Lease itself, or a review that changes nothing."""
        return await self._send(request, timeout or self._timeout)

    @asynccontextmanager
    async def stream(self, request: Request, *, silence: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """The bytes of a watch as they arrive; more than `silence` seconds without any count as a broken connection."""
        try:
            async with self._transport.send(request, timeout=self._timeout, silence=silence) as response:
                metrics.REQUESTS.labels(request.verb, request.kind, str(response.status)).inc()
                if response.status != 200:
                    raise _error(response, await response.read())
                yield response.chunks()
        except TransportError as error:
            raise _unreachable(error) from error

    async def close(self) -> None:
        await self._transport.close()

    async def _send(self, request: Request, timeout: float) -> bytes:
        code = "none"
        try:
            with metrics.REQUEST_SECONDS.labels(request.verb).time():
                async with asyncio.timeout(timeout), self._transport.send(request, timeout=timeout) as response:
                    body = await response.read()
            code = str(response.status)
        except TimeoutError:
            message = f"no response to {request.method} {request.path} within {timeout:.0f} s"
            raise Unavailable(0, "Timeout", message) from None
        except TransportError as error:
            raise _unreachable(error) from error
        finally:
            metrics.REQUESTS.labels(request.verb, request.kind, code).inc()
        if response.status >= 300:
            raise _error(response, body)
        return body


def _error(response: Response, body: bytes) -> ApiError:
    return error_from(response.status, body, retry_after=response.headers.get("Retry-After", ""))


def _unreachable(error: Exception) -> Unavailable:
    return Unavailable(0, type(error).__name__, f"the API server cannot be reached: {error or type(error).__name__}")
