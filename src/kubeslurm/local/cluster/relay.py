"""Forwards TCP connections from the cluster's loopback address on the host to addresses in the cluster's network."""

import asyncio
import contextlib
import socket
import sys
from collections.abc import Callable, Iterable

import msgspec

from kubeslurm.local.host import kernel


class Relay(msgspec.Struct):
    """Listens in the network namespace of the host, and connects from that of this process."""

    host_network: int  # a file descriptor
    address: str
    targets: Callable[[int], Iterable[str]]  # addresses to try for a port, in order
    servers: dict[int, asyncio.Server] = {}

    async def set_ports(self, wanted: set[int]) -> None:
        """Listen on exactly these ports."""
        for port in self.servers.keys() - wanted:
            self.servers.pop(port).close()
        for port in wanted - self.servers.keys():
            try:
                self.servers[port] = await self._listen(port)
            except OSError as error:  # a program listens on this port of all addresses
                print(f"port {port}: {error}", file=sys.stderr, flush=True)  # noqa: T201  its log

    async def _listen(self, port: int) -> asyncio.Server:
        async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            for host in self.targets(port):
                with contextlib.suppress(OSError, TimeoutError):
                    async with asyncio.timeout(3):
                        inner_reader, inner_writer = await asyncio.open_connection(host, port)
                    await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))
                    return
            writer.close()

        listener = kernel.socket_in(self.host_network, lambda: socket.create_server((self.address, port), backlog=128))
        return await asyncio.start_server(forward, sock=listener)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy one direction of a connection. Half-closed connections stay half-closed, as exec and port-forward need."""
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
            return
    writer.close()
