"""How commands talk to a running cluster's init: one JSON line there, one back, over a socket in the run directory."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import msgspec

from kubeslurm.local.errors import LocalError
from kubeslurm.local.supervisor import Condition

SOCKET = "control.sock"


class Request(msgspec.Struct, frozen=True):
    """What is wanted: `status`, or `start`, `stop`, `kill` of a node."""

    verb: str
    node: str = ""


class NodeCondition(msgspec.Struct, frozen=True):
    """One node as its init sees it."""

    name: str
    state: str  # starting, running, stopping, stopped, restarting
    pid: int  # its first process, as the host numbers it
    restarts: int
    since: float


class Reply(msgspec.Struct, frozen=True):
    """The state after the request, or why it was refused."""

    components: list[Condition] = []
    nodes: list[NodeCondition] = []
    error: str = ""


async def serve(run: Path, answer: Callable[[Request], Awaitable[Reply]]) -> None:
    """Answer requests for as long as the process lives."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = msgspec.json.decode(await reader.readline(), type=Request)
        writer.write(msgspec.json.encode(await answer(request)) + b"\n")
        await writer.drain()
        writer.close()

    listener = socket.socket(socket.AF_UNIX)
    with _short(run) as path:
        listener.bind(f"{path}.new")
        listener.listen()
        os.rename(f"{path}.new", path)  # whoever finds the socket gets an answer
    server = await asyncio.start_unix_server(handle, sock=listener)
    await server.serve_forever()


def ask(run: Path, request: Request, *, timeout: float = 60.0) -> Reply:
    """Send one request and wait for its answer."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout)
        try:
            with _short(run) as path:
                connection.connect(path)
            connection.sendall(msgspec.json.encode(request) + b"\n")
            line = connection.makefile("rb").readline()
        except OSError as error:
            raise LocalError(
                "The cluster does not answer.", "See what `kubeslurm local logs init` has to say."
            ) from error
    reply = msgspec.json.decode(line, type=Reply)
    if reply.error:
        raise LocalError(reply.error)
    return reply


@contextlib.contextmanager
def _short(run: Path) -> Iterator[str]:
    """The socket's path by way of an open directory: socket paths may have 107 bytes at most."""
    fd = os.open(run, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{fd}/{SOCKET}"
    finally:
        os.close(fd)
