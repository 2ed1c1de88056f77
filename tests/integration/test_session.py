"""The connections to slurmrestd over real sockets: invalid answers, and whether a request was sent."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from kubeslurm.slurm.errors import Unreachable
from kubeslurm.slurm.rest.client import SlurmClient
from kubeslurm.slurm.rest.session import ConnectionLostError, NotSentError, Reply, Session
from kubeslurm.slurm.rest.transport import Transport

PONG = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
NOT_SERVED = b"Unable to find requested URL endpoint."
TWICE = 2 * (
    b"HTTP/1.1 404 NOT FOUND\r\nConnection: Close\r\nContent-Length: %d\r\nContent-Type: text/plain\r\n\r\n%s"
    % (len(NOT_SERVED), NOT_SERVED)
)


@asynccontextmanager
async def answering(answer: bytes, pong: bytes = b"") -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that gives the same answer to every request and closes; it records the first line of each request.

    A ping is answered with `pong`, if given.
    """
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0]
        pinged = pong and b"/ping/ " in request
        if not pinged:
            requests.append(request)
        writer.write(pong if pinged else answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    async with server:
        yield f"http://{host}:{port}", requests


async def ask(url: str, method: str = "GET", *, changes: bool | None = None) -> Reply:
    session = Session()
    changes = method != "GET" if changes is None else changes
    try:
        return await session.send(method, url, params={}, headers={}, body=b"", changes=changes)
    finally:
        await session.close()


async def test_a_404_that_is_sent_twice_in_a_row_is_one_404() -> None:
    async with answering(TWICE) as (url, _):
        assert (await ask(f"{url}/slurm/v0.0.99/ping/")).status == 404


async def test_a_hostlist_in_the_url_stays_escaped() -> None:
    async with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}") as (url, requests):
        assert (await ask(f"{url}/slurm/v0.0.45/node/gpu-%5B0-9%5D", "DELETE")).body == b"{}"
    assert requests == [b"DELETE /slurm/v0.0.45/node/gpu-%5B0-9%5D HTTP/1.1"]


async def test_a_change_that_got_no_answer_may_have_happened() -> None:
    async with answering(b"") as (url, _):
        with pytest.raises(ConnectionLostError) as failure:
            await ask(f"{url}/slurm/v0.0.45/nodes/", "POST")
    assert not isinstance(failure.value, NotSentError)


async def test_without_a_connection_nothing_was_sent() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound without listening, so that nothing else can listen there
        with pytest.raises(NotSentError):
            await ask(f"http://127.0.0.1:{held.getsockname()[1]}/slurm/v0.0.45/nodes/", "POST")


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_a_change_is_sent_once_whatever_its_method(method: str) -> None:
    async with answering(b"") as (url, requests):
        with pytest.raises(ConnectionLostError) as failure:
            await ask(f"{url}/slurm/v0.0.45/reconfigure/", method, changes=True)
    assert not isinstance(failure.value, NotSentError)
    assert len(requests) == 1


async def test_a_read_that_got_no_answer_is_sent_once_more() -> None:
    async with answering(b"") as (url, requests):
        with pytest.raises(ConnectionLostError):
            await ask(f"{url}/slurm/v0.0.45/nodes/")
    assert len(requests) == 2


async def test_a_requeue_without_an_answer_is_not_sent_to_another_replica() -> None:
    async with answering(b"", PONG) as (first, requests_first), answering(PONG, PONG) as (second, requests_second):
        slurm = SlurmClient(Transport([first, second], lambda: "token"))
        with pytest.raises(Unreachable):
            await slurm.requeue_job(1)
        await slurm.close()
    assert len(requests_first) == 1
    assert requests_second == []


async def test_a_redirect_is_an_error_and_not_followed() -> None:
    async with answering(PONG) as (elsewhere, requests):
        there = f"HTTP/1.1 307 Temporary Redirect\r\nLocation: {elsewhere}/\r\nContent-Length: 2\r\n\r\n{{}}"
        async with answering(there.encode()) as (url, _):
            for method in ("GET", "POST"):
                with pytest.raises(ConnectionLostError, match="307"):
                    await ask(f"{url}/slurm/v0.0.45/nodes/", method)
    assert requests == []


async def test_304_is_a_valid_answer() -> None:
    async with answering(b"HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n") as (url, _):
        assert (await ask(f"{url}/slurm/v0.0.45/nodes/")).status == 304


async def test_a_closed_session_sends_nothing() -> None:
    session = Session()
    async with answering(PONG) as (url, requests):
        await session.close()
        with pytest.raises(NotSentError, match="closed"):
            await session.send("GET", url, params={}, headers={}, body=b"", changes=False)
        await session.close()
    assert requests == []
