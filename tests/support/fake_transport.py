"""A transport without sockets: requests are answered by a function."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx2

from kubeslurm.kube.transport.http import Request, Response, TransportError


class FakeResponse:
    """The response of the function, as a transport returns it."""

    def __init__(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        self.headers = response.headers
        self.read = response.aread
        self.chunks = response.aiter_raw


class FakeTransport:
    """A transport to a function that answers requests."""

    def __init__(self, handler: Callable[[httpx2.Request], httpx2.Response | Awaitable[httpx2.Response]]) -> None:
        self._handler = handler

    @asynccontextmanager
    async def send(self, request: Request, *, timeout: float, silence: float | None = None) -> AsyncIterator[Response]:
        sent = httpx2.Request(
            request.method,
            f"http://fake{request.path}",
            params=request.params,
            content=request.body or None,
            headers={"Content-Type": request.content_type} if request.body else None,
            extensions={"timeout": {"read": silence, "connect": timeout}},
        )
        try:
            answer = self._handler(sent)
            response = await answer if inspect.isawaitable(answer) else answer
            try:
                yield FakeResponse(response)
            finally:
                await response.aclose()
        except httpx2.HTTPError as error:
            raise TransportError(f"{type(error).__name__} {error}") from error

    async def close(self) -> None:
        return
