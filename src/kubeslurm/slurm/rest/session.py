"""HTTP connections to slurmrestd, and their errors."""

import asyncio
import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import aiohttp
import msgspec
import yarl
from aiohttp.client_proto import ResponseHandler

from kubeslurm.engine.http import no_resend

CONNECT = 1.0
KEEP = 5.0  # seconds that an idle connection is kept; slurmrestd closes it later than that

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)")
_CLOSES = re.compile(rb"\r\nconnection:[ \t]*close")


class ConnectionLostError(Exception):
    """The connection broke; the request may have been carried out."""


class NotSentError(ConnectionLostError):
    """There was no connection; the request was not sent."""


class Reply(msgspec.Struct, frozen=True):
    """A whole answer, and the path that was asked for."""

    status: int
    body: bytes
    path: str = ""


class Http(Protocol):
    """Sends a request and returns the whole answer."""

    async def send(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
        changes: bool,
    ) -> Reply: ...

    async def close(self) -> None: ...


def direct() -> aiohttp.BaseConnector:
    """Connections without a proxy, whatever the environment says: pods are reached directly."""
    return aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP)


class _FirstAnswerOnly(ResponseHandler):
    """Cuts off the second copy of an answer.

    slurmrestd 26.05 sends a refusal twice and then closes; the library would take both for one malformed answer, and
    the reason of the refusal would be lost.
    """

    _head: bytes | None = None  # what was received of an answer's head; None once it is complete
    _left: int | None = None  # missing bytes of an answer after which the server closes

    def set_response_params(self, **params: Any) -> None:
        self._head, self._left = b"", None  # the library waits for another answer
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        if self._head is not None:
            self._read_head(self._head, data)
        if self._left is not None:
            data = data[: self._left]
            self._left -= len(data)
        super().data_received(data)  # even if empty: the library then goes on with data that it has set aside

    def _read_head(self, passed: bytes, data: bytes) -> None:
        head, end, _ = (passed + data).partition(b"\r\n\r\n")
        if not end:
            self._head = head
            return
        self._head = None
        lower = head.lower()
        length = _LENGTH.search(lower)
        if length and _CLOSES.search(lower):
            self._left = len(head) + len(end) + int(length[1]) - len(passed)


class Session:
    """Connections that are kept for a while; opened in the event loop that first uses them."""

    def __init__(self, connector: Callable[[], aiohttp.BaseConnector] = direct) -> None:
        self._connector = connector
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    async def send(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
        changes: bool,
    ) -> Reply:
        """Sends one request; only the time to connect is limited here, the deadline is the caller's.

        A read whose connection ends without an answer is sent once more; a request that `changes` something never is.
        """
        if self._closed:
            raise NotSentError("the connections to this cluster were closed")
        session = self._session or self._open()
        try:
            # The brackets of hostlists are escaped already.
            target = yarl.URL(url, encoded=True).update_query(params)
            async with session.request(
                method,
                target,
                headers=headers,
                data=body or None,
                allow_redirects=False,
                middlewares=(no_resend,) if changes else (),
            ) as found:
                if 300 <= found.status < 400 and found.status != 304:
                    raise ConnectionLostError(f"answered {found.status}, which is not an answer of slurmrestd")
                return Reply(found.status, await found.read(), target.path)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, ValueError) as error:
            raise NotSentError(_describe(error)) from error
        except aiohttp.ClientError as error:
            raise ConnectionLostError(_describe(error)) from error

    async def close(self) -> None:
        self._closed = True
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> aiohttp.ClientSession:
        connector = self._connector()
        # The library has no public option for the protocol class of a connection.
        connector._factory = functools.partial(_FirstAnswerOnly, loop=asyncio.get_running_loop())  # type: ignore[assignment]
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT),
            headers={"Accept": "application/json", "Accept-Encoding": "identity"},
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self._session


def _describe(error: Exception) -> str:
    return f"{type(error).__name__} {error}".strip()
