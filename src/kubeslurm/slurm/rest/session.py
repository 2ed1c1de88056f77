"""The connections to slurmrestd, and what can go wrong on them."""

import asyncio
import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import aiohttp
import msgspec
import yarl
from aiohttp.client_proto import ResponseHandler

from kubeslurm.engine.http import unrepeated

CONNECT = 1.0
KEEP = 5.0  # seconds; slurmrestd may close an idle connection later on

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)")
_CLOSES = re.compile(rb"\r\nconnection:[ \t]*close")


class LineError(Exception):
    """The connection broke; what was asked for may have been done."""


class UnsentError(LineError):
    """There was no connection: nothing was asked."""


class Reply(msgspec.Struct, frozen=True):
    """A whole answer, and what it answers."""

    status: int
    body: bytes
    path: str = ""


class Http(Protocol):
    """What the transport needs of the network."""

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
    """Pods are reached directly, never through a proxy of the environment."""
    return aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP)


class _Once(ResponseHandler):
    """Lets the first copy of an answer through.

    slurmrestd 26.05 sends an answer that refuses something twice, then closes; the library would take the whole for
    malformed, and what was refused, and why, would be lost.
    """

    _head: bytes | None = None  # what has come of the head of an answer; None once it is whole
    _left: int | None = None  # bytes of a closing answer that are still to come

    def set_response_params(self, **params: Any) -> None:
        self._head, self._left = b"", None  # the library awaits another answer
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        if self._head is not None:
            self._look(self._head, data)
        if self._left is not None:
            data = data[: self._left]
            self._left -= len(data)
        super().data_received(data)  # even without any: so the library goes on with what it has put aside

    def _look(self, passed: bytes, data: bytes) -> None:
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
    """Connections that are kept for a while; made in the loop that first uses them."""

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
        """One exchange; its deadline is the caller's, but for the time that a connection may take.

        A read whose connection ends without an answer is sent once more; what `changes` something never is.
        """
        if self._closed:
            raise UnsentError("the connections to this cluster were closed")
        session = self._session or self._open()
        try:
            # Hostlists come with their brackets escaped, and must stay so.
            target = yarl.URL(url, encoded=True).update_query(params)
            async with session.request(
                method,
                target,
                headers=headers,
                data=body or None,
                allow_redirects=False,
                middlewares=(unrepeated,) if changes else (),
            ) as found:
                if 300 <= found.status < 400 and found.status != 304:
                    raise LineError(f"answered {found.status}, which slurmrestd never does: another server is there")
                return Reply(found.status, await found.read(), target.path)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, ValueError) as error:
            raise UnsentError(_words(error)) from error
        except aiohttp.ClientError as error:
            raise LineError(_words(error)) from error

    async def close(self) -> None:
        self._closed = True
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> aiohttp.ClientSession:
        connector = self._connector()
        # The library has no public way to choose the protocol of a connection.
        connector._factory = functools.partial(_Once, loop=asyncio.get_running_loop())  # type: ignore[assignment]
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT),
            headers={"Accept": "application/json", "Accept-Encoding": "identity"},
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self._session


def _words(error: Exception) -> str:
    return f"{type(error).__name__} {error}".strip()
