"""An HTTP server on the loop that everything else runs on."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator

import uvicorn
from starlette.applications import Starlette

from kubeslurm.operator.settings.model import SettingsError


class _IdleServer(uvicorn.Server):
    """Leaves signals to the process, which stops its parts in order, and uses no CPU while there are no requests."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._stopping = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def main_loop(self) -> None:
        """Waits for the stop; uvicorn's own loop wakes up ten times a second."""
        await self._stopping.wait()

    def stop(self) -> None:
        self.should_exit = True
        self._stopping.set()


class Server:
    """Serves one application at one address until it is cancelled."""

    def __init__(self, app: Starlette, address: tuple[str, int], *, tls: ssl.SSLContext | None = None) -> None:
        self._address = address
        self._server = _IdleServer(
            uvicorn.Config(
                app,
                ssl_context_factory=(lambda _config, _default: tls) if tls else None,
                lifespan="off",
                access_log=False,
                log_config=None,
                server_header=False,
                date_header=False,
                # A stop must not wait for a client that holds its connection open.
                timeout_graceful_shutdown=3,
            )
        )

    @property
    def started(self) -> bool:
        """Whether connections are accepted."""
        return self._server.started and not self._server.should_exit

    async def run(self) -> None:
        serving = asyncio.create_task(self._server.serve(sockets=[listen(self._address)]))
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            self._server.stop()
            await serving
            raise


def listen(address: tuple[str, int]) -> socket.socket:
    """A listening socket; an empty host means every address, of both IP versions where there are two."""
    host, port = address
    try:
        if not host and socket.has_dualstack_ipv6():
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise SettingsError(f"cannot listen on {host}:{port} ({error.strerror}): choose another address.") from error
