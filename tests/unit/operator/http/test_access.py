"""Who gets to see guarded metrics."""

from typing import Any

import httpx2
import msgspec
import pytest

from kubeslurm.kube.transport.connection import Connection
from kubeslurm.operator.http.access import MetricsAccess
from tests.support.fake_transport import FakeTransport


def server(request: httpx2.Request) -> httpx2.Response:
    """An API server that knows the tokens `reader` and `other`, of which only the first may get /metrics."""
    spec = msgspec.json.decode(request.content)["spec"]
    status: dict[str, Any]
    if request.url.path.endswith("/tokenreviews"):
        known = spec["token"] in ("reader", "other")
        status = {"authenticated": known, "user": {"username": spec["token"]}}
    else:
        assert spec["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}
        status = {"allowed": spec["user"] == "reader"}
    return httpx2.Response(201, json={"status": status})


def failing(_request: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(500, json={"kind": "Status", "message": "broken"})


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        ("", 401),
        ("Basic abc", 401),
        ("Bearer ", 401),
        ("Bearer stranger", 401),
        ("Bearer other", 403),
        ("bearer reader", 200),
    ],
)
async def test_only_those_who_may_get_metrics_are_let_in(authorization: str, status: int) -> None:
    assert await MetricsAccess(Connection(FakeTransport(server)))(authorization) == status


async def test_nobody_is_let_in_while_the_api_server_cannot_be_asked() -> None:
    assert await MetricsAccess(Connection(FakeTransport(failing)))("Bearer reader") == 503
