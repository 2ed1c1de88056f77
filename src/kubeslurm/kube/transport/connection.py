"""One authenticated connection pool to an API server: requests with deadlines, bounded and fenced writes, streams."""

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
from kubeslurm.kube.transport.terminating import TerminatingNamespaces
from kubeslurm.kube.transport.wire import Answer, Line, Request, Wire, WireError

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
    """No cluster to talk to; the message says what to do."""


def connect(kubeconfig: Path | None = None, context: str | None = None) -> Wire:
    """A line to the cluster of the kubeconfig; without one, of the pod's service account or of $KUBECONFIG."""
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
    return Wire(params["base_url"], tls=params["verify"], auth=params["auth"])


class Connection:
    """The requests that everything else is made of."""

    def __init__(self, line: Line, *, fence: Fence | None = None, writes: int = 16, timeout: float = 10.0) -> None:
        self._line = line
        self._fence = fence
        self._slots = asyncio.Semaphore(writes)
        self._timeout = timeout
        self._terminating = TerminatingNamespaces(time.monotonic)

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
        """The bytes of a watch as they come; more than `silence` seconds without any counts as a dead connection."""
        try:
            async with self._line.ask(request, timeout=self._timeout, silence=silence) as answer:
                metrics.REQUESTS.labels(request.verb, request.kind, str(answer.status)).inc()
                if answer.status != 200:
                    raise _refusal(answer, await answer.read())
                yield answer.blocks()
        except WireError as error:
            raise _unreachable(error) from error

    async def close(self) -> None:
        await self._line.close()

    async def _send(self, request: Request, timeout: float) -> bytes:
        code = "none"
        try:
            with metrics.REQUEST_SECONDS.labels(request.verb).time():
                async with asyncio.timeout(timeout), self._line.ask(request, timeout=timeout) as answer:
                    body = await answer.read()
            code = str(answer.status)
        except TimeoutError:
            message = f"no answer to {request.method} {request.path} within {timeout:.0f} s"
            raise Unavailable(0, "Timeout", message) from None
        except WireError as error:
            raise _unreachable(error) from error
        finally:
            metrics.REQUESTS.labels(request.verb, request.kind, code).inc()
        if answer.status >= 300:
            raise _refusal(answer, body)
        return body


def _refusal(answer: Answer, body: bytes) -> ApiError:
    return error_from(answer.status, body, retry_after=answer.headers.get("Retry-After", ""))


def _unreachable(error: Exception) -> Unavailable:
    return Unavailable(0, type(error).__name__, f"the API server cannot be reached: {error or type(error).__name__}")
