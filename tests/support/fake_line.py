"""A line to an API server without sockets: it ends in a function that answers requests."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx2

from kubeslurm.kube.transport.wire import Answer, Request, WireError


class FakeAnswer:
    """What a handler made, as a line gives it."""

    def __init__(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        self.headers = response.headers
        self.read = response.aread
        self.blocks = response.aiter_raw


class FakeLine:
    """A line to a function that answers requests."""

    def __init__(self, handler: Callable[[httpx2.Request], httpx2.Response | Awaitable[httpx2.Response]]) -> None:
        self._handler = handler

    @asynccontextmanager
    async def ask(self, request: Request, *, timeout: float, silence: float | None = None) -> AsyncIterator[Answer]:
        sent = httpx2.Request(
            request.method,
            f"http://fake{request.path}",
            params=request.params,
            content=request.body or None,
            headers={"Content-Type": request.content_type} if request.body else None,
            extensions={"timeout": {"read": silence, "connect": timeout}},
        )
        try:
            made = self._handler(sent)
            response = await made if inspect.isawaitable(made) else made
            try:
                yield FakeAnswer(response)
            finally:
                await response.aclose()
        except httpx2.HTTPError as error:
            raise WireError(f"{type(error).__name__} {error}") from error

    async def close(self) -> None:
        return
