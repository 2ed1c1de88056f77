"""The connections to slurmrestd over real sockets: what it sends against the rules, and when nothing was sent."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from kubeslurm.slurm.session import LineError, Reply, Session, UnsentError

NOT_SERVED = b"Unable to find requested URL endpoint."
TWICE = 2 * (
    b"HTTP/1.1 404 NOT FOUND\r\nConnection: Close\r\nContent-Length: %d\r\nContent-Type: text/plain\r\n\r\n%s"
    % (len(NOT_SERVED), NOT_SERVED)
)


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that says the same to everybody and hangs up; it notes the first line of each request."""
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0])
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    async with server:
        yield f"http://{host}:{port}", asked


async def ask(url: str, method: str = "GET") -> Reply:
    session = Session()
    try:
        return await session.send(method, url, params={}, headers={}, body=b"")
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
        with pytest.raises(LineError) as failure:
            await ask(f"{url}/slurm/v0.0.45/nodes/", "POST")
    assert not isinstance(failure.value, UnsentError)


async def test_without_a_connection_nothing_was_sent() -> None:
    async with answering(b"") as (url, _):
        gone = url
    with pytest.raises(UnsentError):
        await ask(f"{gone}/slurm/v0.0.45/nodes/", "POST")
