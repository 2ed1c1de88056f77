"""A TCP proxy in front of an API server, to break connections in ways that the server itself does not."""

import asyncio
from pathlib import Path

import yaml

from kubeslurm.local.cluster.cluster import Cluster


class Proxy:
    """Forwards to the cluster's API server on the same loopback address, so that its certificate is valid."""

    def __init__(self, cluster: Cluster, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self._config = yaml.safe_load(cluster.kubeconfig.read_text())
        server: str = self._config["clusters"][0]["cluster"]["server"]
        host, _, port = server.removeprefix("https://").rpartition(":")
        self._target = (host, int(port))
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.connections = 0

    async def open(self, port: int = 0) -> None:
        """Listen, and write a kubeconfig with this address."""
        self._server = await asyncio.start_server(self._serve, self._target[0], port)
        self._port = self._server.sockets[0].getsockname()[1]
        self._config["clusters"][0]["cluster"]["server"] = f"https://{self._target[0]}:{self._port}"
        self.kubeconfig.write_text(yaml.safe_dump(self._config))

    async def close(self) -> None:
        """Refuse connections, and break those that are open."""
        if self._server is not None:
            self._server.close()
        self.cut()

    async def reopen(self) -> None:
        await self.open(self._port)

    def cut(self) -> None:
        """Break every connection, also in the middle of a message."""
        for writer in list(self._writers):
            writer.transport.abort()

    def freeze(self) -> None:
        """Forward nothing any more, without closing a connection."""
        self._flowing.clear()

    def thaw(self) -> None:
        self._flowing.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            upstream_reader, upstream_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        pair = {writer, upstream_writer}
        self._writers |= pair
        try:
            await asyncio.wait(
                [
                    asyncio.create_task(self._forward(reader, upstream_writer)),
                    asyncio.create_task(self._forward(upstream_reader, writer)),
                ],
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            self._writers -= pair
            for each in pair:
                each.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await self._flowing.wait()
                data = await reader.read(65536)
                await self._flowing.wait()
                if not data:
                    return
                writer.write(data)
                await writer.drain()
        except OSError:
            return
