"""Watch streams read straight from the socket: a general HTTP library spends more on each event than decoding it.

Only the little of HTTP/1.1 that a watch needs; requests, pooling, proxies and authentication stay with the library.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

import httpx2

BUFFER = 1 << 20
ERROR_LIMIT = 1 << 20


class WireError(Exception):
    """The connection broke, fell silent, or spoke something else than HTTP."""


class Answer:
    """Status and headers, and then the body as it comes."""

    def __init__(self, reader: asyncio.StreamReader, status: int, headers: dict[str, str], silence: float) -> None:
        self.status = status
        self.headers = headers
        self._reader = reader
        self._silence = silence

    async def blocks(self) -> AsyncIterator[bytes]:
        """What has arrived, as often as something has; ends with the body, fails when the connection does."""
        chunked = "chunked" in self.headers.get("transfer-encoding", "").lower()
        body = Chunks() if chunked else Plain(int(self.headers.get("content-length", "-1")))
        while not body.complete:
            with _translated():
                async with asyncio.timeout(self._silence):
                    data = await self._reader.read(BUFFER)
                block = body.feed(data)
            if not data:
                if body.ends_with_connection:
                    return
                raise WireError("the server closed the connection in the middle of its answer")
            if block:
                yield block

    async def text(self) -> bytes:
        """The whole body of an answer that is not a stream."""
        found = b""
        async for block in self.blocks():
            found += block
            if len(found) > ERROR_LIMIT:
                break
        return found


class Plain:
    """A body of known length, or one that ends with the connection."""

    def __init__(self, length: int) -> None:
        self._left = length
        self.ends_with_connection = length < 0

    @property
    def complete(self) -> bool:
        return self._left == 0

    def feed(self, data: bytes) -> bytes:
        if not self.ends_with_connection:
            self._left -= len(data)
        return data


class Chunks:
    """A body in chunks: takes bytes as they arrive and gives back those of the body."""

    ends_with_connection = False

    def __init__(self) -> None:
        self.complete = False
        self._rest = b""
        self._left = 0  # bytes of the current chunk still to come, its line end included

    def feed(self, data: bytes) -> bytes:
        if self.complete:
            return b""
        if self._rest:
            data, self._rest = self._rest + data, b""
        found: list[bytes] = []
        at, end = 0, len(data)
        while at < end:
            if self._left > 2:
                block = data[at : at + self._left - 2]
                found.append(block)
                at += len(block)
                self._left -= len(block)
            elif self._left:
                step = min(self._left, end - at)
                at += step
                self._left -= step
            else:
                line = data.find(b"\r\n", at)
                if line < 0:
                    self._rest = data[at:]
                    break
                size = int(data[at:line].split(b";")[0], 16)
                at = line + 2
                if size == 0:
                    self.complete = True
                    break
                self._left = size + 2
        return found[0] if len(found) == 1 else b"".join(found)


class Wire:
    """Opens one connection for each stream, with the TLS and the credentials of a client."""

    def __init__(self, tls: ssl.SSLContext, auth: httpx2.Auth | None) -> None:
        self._tls = tls
        self._auth = auth

    @asynccontextmanager
    async def get(self, request: httpx2.Request, *, timeout: float, silence: float) -> AsyncIterator[Answer]:
        """The answer to a GET; a rejected credential is renewed once, as the client does."""
        flow = (self._auth or httpx2.Auth()).async_auth_flow(request)
        try:
            writer, answer = await self._exchange(await anext(flow), timeout, silence)
            if answer.status == 401:
                with suppress(StopAsyncIteration):
                    again = await flow.asend(httpx2.Response(401, request=request))
                    writer.transport.abort()
                    writer, answer = await self._exchange(again, timeout, silence)
        finally:
            await flow.aclose()
        try:
            yield answer
        finally:
            writer.transport.abort()

    async def _exchange(
        self, request: httpx2.Request, timeout: float, silence: float
    ) -> tuple[asyncio.StreamWriter, Answer]:
        url = request.url
        tls = self._tls if url.scheme == "https" else None
        with _translated():
            async with asyncio.timeout(timeout):
                reader, writer = await asyncio.open_connection(
                    url.host, url.port or (443 if tls else 80), ssl=tls, limit=BUFFER
                )
                try:
                    writer.write(_head(request))
                    status, headers = _parsed(await reader.readuntil(b"\r\n\r\n"))
                except BaseException:
                    writer.transport.abort()
                    raise
        return writer, Answer(reader, status, headers, silence)


@contextmanager
def _translated() -> Iterator[None]:
    """Whatever goes wrong on the connection, as one error."""
    try:
        yield
    except (OSError, ValueError, EOFError, asyncio.LimitOverrunError) as error:
        raise WireError(f"{type(error).__name__} {error}".strip()) from error


def _head(request: httpx2.Request) -> bytes:
    skipped = ("accept-encoding", "connection")
    headers = [(name, value) for name, value in request.headers.raw if name.decode().lower() not in skipped]
    lines = [b"GET " + request.url.raw_path + b" HTTP/1.1", *(name + b": " + value for name, value in headers)]
    return b"\r\n".join([*lines, b"", b""])


def _parsed(head: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    version, status, *_ = first.split(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError(f"not HTTP/1.1: {first[:100]!r}")
    pairs = (line.partition(":") for line in lines if line)
    return int(status), {name.strip().lower(): value.strip() for name, _, value in pairs}
