"""The connections to slurmrestd over real sockets: what it sends against the rules, and when nothing was sent."""

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
    """A server that says the same to everybody and hangs up; it notes the first line of each request.

    With a `pong` it gives that for a ping.
    """
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0]
        pinged = pong and b"/ping/ " in request
        if not pinged:
            asked.append(request)
        writer.write(pong if pinged else answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    async with server:
        yield f"http://{host}:{port}", asked


async def ask(url: str, method: str = "GET", *, changes: bool | None = None) -> Reply:
    session = Session()
    changes = method != "GET" if changes is None else changes
    try:
        return await session.send(method, url, params={}, headers={}, body=b"", changes=changes)
    finally:
        await session.close()


async def test_an_endpoint_that_is_refused_twice_in_one_breath_is_not_served() -> None:
    async with answering(TWICE) as (url, _):
        assert (await ask(f"{url}/slurm/v0.0.99/ping/")).status == 404


async def test_a_hostlist_in_the_address_stays_as_it_was_escaped() -> None:
    async with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}") as (url, asked):
        assert (await ask(f"{url}/slurm/v0.0.45/node/gpu-%5B0-9%5D", "DELETE")).body == b"{}"
    assert asked == [b"DELETE /slurm/v0.0.45/node/gpu-%5B0-9%5D HTTP/1.1"]


async def test_a_change_that_got_no_answer_may_have_happened() -> None:
    async with answering(b"") as (url, _):
        with pytest.raises(ConnectionLostError) as failure:
            await ask(f"{url}/slurm/v0.0.45/nodes/", "POST")
    assert not isinstance(failure.value, NotSentError)


async def test_without_a_connection_nothing_was_sent() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # nobody listens there, and nobody else can
        with pytest.raises(NotSentError):
            await ask(f"http://127.0.0.1:{held.getsockname()[1]}/slurm/v0.0.45/nodes/", "POST")


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_a_change_is_sent_once_whatever_its_method(method: str) -> None:
    async with answering(b"") as (url, asked):
        with pytest.raises(ConnectionLostError) as failure:
            await ask(f"{url}/slurm/v0.0.45/reconfigure/", method, changes=True)
    assert not isinstance(failure.value, NotSentError)
    assert len(asked) == 1


async def test_a_read_that_got_no_answer_is_sent_once_more() -> None:
    async with answering(b"") as (url, asked):
        with pytest.raises(ConnectionLostError):
            await ask(f"{url}/slurm/v0.0.45/nodes/")
    assert len(asked) == 2


async def test_a_requeue_that_got_no_answer_goes_to_no_other_replica() -> None:
    async with answering(b"", PONG) as (first, asked_first), answering(PONG, PONG) as (second, asked_second):
        slurm = SlurmClient(Transport([first, second], lambda: "token"))
        with pytest.raises(Unreachable):
            await slurm.requeue_job(1)
        await slurm.close()
    assert len(asked_first) == 1
    assert asked_second == []


async def test_an_answer_that_points_elsewhere_is_an_error_and_not_followed() -> None:
    async with answering(PONG) as (elsewhere, asked):
        there = f"HTTP/1.1 307 Temporary Redirect\r\nLocation: {elsewhere}/\r\nContent-Length: 2\r\n\r\n{{}}"
        async with answering(there.encode()) as (url, _):
            for method in ("GET", "POST"):
                with pytest.raises(ConnectionLostError, match="307"):
                    await ask(f"{url}/slurm/v0.0.45/nodes/", method)
    assert asked == []


async def test_nothing_has_changed_is_an_answer() -> None:
    async with answering(b"HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n") as (url, _):
        assert (await ask(f"{url}/slurm/v0.0.45/nodes/")).status == 304


async def test_after_its_end_a_session_sends_nothing() -> None:
    session = Session()
    async with answering(PONG) as (url, asked):
        await session.close()
        with pytest.raises(NotSentError, match="closed"):
            await session.send("GET", url, params={}, headers={}, body=b"", changes=False)
        await session.close()
    assert asked == []
