"""Requests and streams over real sockets: credentials, broken connections, silence."""

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from aiohttp import web
from lightkube.config.client_adapter import BearerTokenFileAuth, ExecAuth
from lightkube.config.models import UserExec

from kubeslurm.kube.transport.http import HttpTransport, Request, TransportError
from tests.support.waiting import eventually

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
WATCH = Request(verb="watch", kind="Pod", path="/pods")


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[str]:
    """A server on the loopback interface."""
    runner = web.ServerRunner(web.Server(handler), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def open_transport(handler: Handler, auth: httpx2.Auth | None = None) -> AsyncIterator[HttpTransport]:
    async with serving(handler) as url:
        transport = HttpTransport(url, auth=auth)
        try:
            yield transport
        finally:
            await transport.close()


async def follow(transport: HttpTransport, found: list[bytes], silence: float = 60.0) -> None:
    async with transport.send(WATCH, timeout=60, silence=silence) as answer:
        async for chunk in answer.chunks():
            found.append(chunk)  # noqa: PERF401  what arrived before the failure counts


async def test_a_request_has_its_user_agent_content_type_and_body() -> None:
    seen: list[tuple[str, str, str, bytes]] = []

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        agent, kind = request.headers["User-Agent"], request.headers["Content-Type"]
        seen.append((request.path_qs, agent, kind, await request.read()))
        return web.Response(status=201, body=b"made")

    request = Request(verb="create", kind="Pod", path="/pods", method="POST", params={"fieldManager": "me"}, body=b"{}")
    async with open_transport(handler) as transport, transport.send(request, timeout=60) as answer:
        assert (answer.status, await answer.read()) == (201, b"made")
    assert seen == [("/pods?fieldManager=me", "kubeslurm", "application/json", b"{}")]


async def test_a_rejected_token_is_read_again_and_then_kept(tmp_path: pytest.TempPathFactory) -> None:
    file = str(tmp_path) + "/token"
    tokens: list[str] = []

    def write(text: str) -> None:
        with open(file, "w") as out:
            out.write(text)

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        tokens.append(request.headers["Authorization"])
        return web.Response(status=200 if tokens[-1] == "Bearer new" else 401)

    write("old")
    request = Request(verb="get", kind="Pod", path="/pods/a")
    async with open_transport(handler, BearerTokenFileAuth(file)) as transport:
        async with transport.send(request, timeout=60) as answer:
            assert answer.status == 401
        write("new")
        for _ in range(2):
            async with transport.send(request, timeout=60) as answer:
                assert answer.status == 200
    assert tokens[-3:] == ["Bearer old", "Bearer new", "Bearer new"]


async def test_a_missing_credential_is_an_error_until_it_is_there(tmp_path: Path) -> None:
    seen: list[str] = []

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        seen.append(request.headers["Authorization"])
        return web.Response()

    async with open_transport(handler, BearerTokenFileAuth(str(tmp_path / "token"))) as transport:
        with pytest.raises(TransportError, match="no credential"):
            await follow(transport, [])
        (tmp_path / "token").write_text("here")
        await follow(transport, [])
    assert seen == ["Bearer here"]


@pytest.mark.parametrize("prints", ["", "[]", "{}", "null"])
async def test_a_program_that_prints_no_credential_is_an_error(prints: str) -> None:
    async def handler(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response()

    version = "client.authentication.k8s.io/v1beta1"
    auth = ExecAuth(UserExec(apiVersion=version, command="echo", args=[prints]))
    async with open_transport(handler, auth) as transport:
        with pytest.raises(TransportError, match="no credential"):
            await follow(transport, [])


class Hanging(httpx2.Auth):
    """A credential that never arrives."""

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        await asyncio.Event().wait()
        yield request


async def test_a_credential_that_never_arrives_counts_as_no_response() -> None:
    async def handler(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response()

    async with open_transport(handler, Hanging()) as transport, asyncio.timeout(60):
        with pytest.raises(TransportError, match="no response"):
            async with transport.send(WATCH, timeout=0.1, silence=60):
                pass


@pytest.mark.parametrize(("method", "times"), [("GET", 2), ("POST", 1), ("PUT", 1), ("PATCH", 1), ("DELETE", 1)])
async def test_only_a_read_without_a_response_is_sent_once_more(method: str, times: int) -> None:
    received: list[str] = []

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        received.append(request.method)
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    async with open_transport(handler) as transport:
        with pytest.raises(TransportError):
            async with transport.send(Request(verb="any", kind="Pod", path="/pods/a", method=method), timeout=60):
                pass
    assert received == [method] * times


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_redirect_is_an_error_and_not_followed(method: str) -> None:
    followed: list[str] = []

    async def other(request: web.BaseRequest) -> web.StreamResponse:
        followed.append(request.path)
        return web.Response()

    async with serving(other) as elsewhere:

        async def handler(_request: web.BaseRequest) -> web.StreamResponse:
            return web.Response(status=307, headers={"Location": f"{elsewhere}/pods/a"})

        async with open_transport(handler) as transport:
            with pytest.raises(TransportError, match="307"):
                async with transport.send(Request(verb="any", kind="Pod", path="/pods/a", method=method), timeout=60):
                    pass
    assert followed == []


async def test_a_stream_arrives_as_it_is_sent_and_silence_is_an_error() -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"one\n")
        await asyncio.Event().wait()
        return response

    found: list[bytes] = []
    async with open_transport(handler) as transport:
        with pytest.raises(TransportError, match="Timeout"):
            await follow(transport, found, silence=3)
    assert b"".join(found) == b"one\n"


async def test_the_kernel_batches_a_busy_stream_and_stops_when_it_is_quiet() -> None:
    peers: list[tuple[str, int]] = []
    seen = asyncio.Event()

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        peers.append(request.transport.get_extra_info("peername"))
        response = web.StreamResponse()
        await response.prepare(request)
        while not seen.is_set():
            await response.write(b"one\n")
            await asyncio.sleep(0.001)
        await response.write(b"last\n")
        await asyncio.Event().wait()
        return response

    found: list[bytes] = []
    async with open_transport(handler) as transport:
        following = asyncio.create_task(follow(transport, found))
        await eventually("the first chunk", lambda: found)
        ours = socket_at(peers[0])
        await eventually("a busy stream to be batched", lambda: threshold(ours) > 1)
        seen.set()
        await eventually("the last chunk", lambda: found[-1].endswith(b"last\n"))
        await eventually("a quiet stream not to be batched", lambda: threshold(ours) == 1)
        ours.close()
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    assert set(b"".join(found).split()) == {b"one", b"last"}


def threshold(sock: socket.socket) -> int:
    """How many bytes must have arrived before the socket is readable."""
    return sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)


async def test_a_stream_that_breaks_is_an_error() -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"one\n")
        assert request.transport is not None
        request.transport.abort()
        return response

    async with open_transport(handler) as transport:
        with pytest.raises(TransportError):
            await follow(transport, [])


def socket_at(name: tuple[str, int]) -> socket.socket:
    """A second handle on the socket of this process with that address."""
    for entry in os.listdir("/proc/self/fd"):
        try:
            found = socket.socket(fileno=os.dup(int(entry)))
        except OSError:  # no socket, or closed meanwhile
            continue
        if found.family == socket.AF_INET and found.getsockname() == name:
            return found
        found.close()
    raise LookupError(name)


async def test_the_kernel_notices_a_lost_peer_within_35_seconds() -> None:
    peers: list[tuple[str, int]] = []

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        peers.append(request.transport.get_extra_info("peername"))
        return web.Response()

    tcp = socket.IPPROTO_TCP
    async with open_transport(handler) as transport, transport.send(WATCH, timeout=60, silence=60):
        ours = socket_at(peers[0])
        assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        idle, interval = ours.getsockopt(tcp, socket.TCP_KEEPIDLE), ours.getsockopt(tcp, socket.TCP_KEEPINTVL)
        assert idle + interval * ours.getsockopt(tcp, socket.TCP_KEEPCNT) == 35
        assert ours.getsockopt(tcp, socket.TCP_USER_TIMEOUT) == 35_000
        ours.close()


async def test_a_server_that_is_down_is_an_error() -> None:
    async def handler(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response()

    async with serving(handler) as url:
        transport = HttpTransport(url)
    with pytest.raises(TransportError):
        await follow(transport, [])
    await transport.close()


async def test_the_proxy_of_the_environment_is_used_unless_the_server_is_exempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def proxy(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=f"proxy for {request.url.host}".encode())

    async with serving(proxy) as url:
        monkeypatch.setenv("http_proxy", url)
        transport = HttpTransport("http://kube.example")
        async with transport.send(Request(verb="get", kind="Pod", path="/pods/a"), timeout=60) as answer:
            assert await answer.read() == b"proxy for kube.example"
        await transport.close()
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
        direct = HttpTransport(url)
        async with direct.send(Request(verb="get", kind="Pod", path="/pods/a"), timeout=60) as answer:
            assert answer.status == 200
        await direct.close()
