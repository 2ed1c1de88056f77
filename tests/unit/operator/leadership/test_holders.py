"""Who can be the holder of a Lease: only an account that may change NodeSets."""

from typing import Any

import httpx2
import msgspec
import pytest

from kubeslurm.kube.transport.connection import Connection
from kubeslurm.operator.leadership.holders import VALID, Holders
from tests.support.clock import HandClock
from tests.support.fake_transport import FakeTransport

ACCOUNT = "system:serviceaccount:there:operator"


class Server:
    """An API server with two accounts in a namespace, NodeSets in another, and rights that a test gives."""

    def __init__(self) -> None:
        self.granted: set[tuple[str, str]] = set()  # account, and namespace or ""
        self.broken = ""
        self.reviews = 0

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path
        if self.broken and path.endswith(self.broken):
            return httpx2.Response(403, json={"kind": "Status", "message": "no"})
        if path.endswith("/namespaces/there/serviceaccounts"):
            return listed("there", "default", "operator")
        if path.endswith("/nodesets"):
            return listed("slurm", "cpu")
        assert path.endswith("/subjectaccessreviews")
        self.reviews += 1
        spec = msgspec.json.decode(request.content)["spec"]
        asked = spec["resourceAttributes"]
        assert (asked["verb"], asked["group"], asked["resource"]) == ("patch", "slinky.slurm.net", "nodesets")
        return httpx2.Response(201, json={"status": {"allowed": (spec["user"], asked["namespace"]) in self.granted}})


def listed(namespace: str, *found: str) -> httpx2.Response:
    items: list[Any] = [{"metadata": {"name": name, "namespace": namespace}} for name in found]
    for item in items:
        item["spec"] = {"controllerRef": {"name": "slurm"}}
    return httpx2.Response(200, json={"metadata": {}, "items": items})


def holders(server: Server, clock: HandClock | None = None) -> Holders:
    return Holders(Connection(FakeTransport(server)), clock or HandClock())


async def test_accounts_without_rights_on_nodesets_are_no_operators() -> None:
    assert not await holders(Server()).can_act("there")


@pytest.mark.parametrize("where", ["", "slurm"])
async def test_an_account_that_may_change_nodesets_anywhere_is_an_operator(where: str) -> None:
    server = Server()
    server.granted = {(ACCOUNT, where)}
    assert await holders(server).can_act("there")


@pytest.mark.parametrize("refused", ["/serviceaccounts", "/nodesets", "/subjectaccessreviews"])
async def test_whoever_cannot_be_judged_counts_as_an_operator(refused: str) -> None:
    server = Server()
    server.broken = refused
    assert await holders(server).can_act("there")


async def test_an_answer_is_kept_for_a_while_and_rights_given_later_are_noticed() -> None:
    server, clock = Server(), HandClock()
    judged = holders(server, clock)
    assert not await judged.can_act("there")
    asked = server.reviews
    server.granted = {(ACCOUNT, "")}
    assert not await judged.can_act("there")
    assert server.reviews == asked
    clock.now += VALID
    assert await judged.can_act("there")
