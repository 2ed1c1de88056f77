"""Which replica is asked, and what may be sent at all."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from kubeslurm.slurm.errors import Refused, SlurmError, Unauthorized, Unreachable, WrongCluster
from kubeslurm.slurm.rest.client import SlurmClient
from kubeslurm.slurm.rest.models import NodeUpdate
from kubeslurm.slurm.rest.transport import IDENTITY, Admit, Transport
from tests.unit.slurm.slurmrestd import EMPTY, FakeSession, Slurmrestd

Act = Callable[[SlurmClient], Awaitable[object]]

READ: Act = lambda slurm: slurm.jobs_state()  # noqa: E731
WRITES: list[tuple[str, Act]] = [
    ("POST nodes/", lambda slurm: slurm.update_nodes(["n"], NodeUpdate.resume())),
    ("DELETE node/n", lambda slurm: slurm.delete_nodes(["n"])),
    ("DELETE job/1", lambda slurm: slurm.cancel_job(1)),
    ("GET job/1/requeue", lambda slurm: slurm.requeue_job(1)),
    ("GET reconfigure/", lambda slurm: slurm.reconfigure()),
]


class NotLeader(Exception):  # noqa: N818
    """What the fence of a test raises."""


def client(server: Slurmrestd, *hosts: str, admit: Admit | None = None) -> SlurmClient:
    servers = [f"http://{host}:6820" for host in hosts or ("a",)]
    return SlurmClient(Transport(servers, lambda: "token", http=server.http, admit=admit))


def fault(number: int) -> dict[str, Any]:
    return {"errors": [{"error_number": number, "error": "no"}], "warnings": []}


def only_a(status: int, body: Any) -> Callable[[httpx2.Request], tuple[int, Any]]:
    """A sick replica beside a good one."""
    return lambda request: (status, body) if request.url.host == "a" else (200, EMPTY)


def closed(_timeout: float) -> float:
    raise NotLeader


@pytest.mark.parametrize(("asked", "act"), WRITES)
async def test_what_changes_slurm_is_not_sent_once_leadership_is_lost(asked: str, act: Act) -> None:
    server = Slurmrestd()
    server.answers = {asked: (200, EMPTY)}
    with pytest.raises(NotLeader):
        await act(client(server, admit=closed))
    assert server.asked == []
    await act(client(server, admit=lambda timeout: timeout))
    assert server.asked == [f"a {asked}"]


async def test_reads_need_no_leadership() -> None:
    server = Slurmrestd()
    server.answers = {"GET jobs/state/": (200, EMPTY)}
    await READ(client(server, admit=closed))
    assert server.asked == ["a GET jobs/state/"]


@pytest.mark.looptime
async def test_a_change_ends_before_leadership_may_pass_to_another() -> None:
    async def silence(request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            return httpx2.Response(200, content=json.dumps(EMPTY).encode())
        await asyncio.Event().wait()
        raise AssertionError

    transport = Transport(["http://a"], lambda: "t", http=FakeSession(silence), admit=lambda _timeout: 0.05)
    with pytest.raises(Unreachable):
        async with asyncio.timeout(5):
            await transport.call("POST", "nodes/", body={})


@pytest.mark.parametrize(
    ("status", "body"), [(511, fault(1007)), (401, b"no"), (502, fault(1800)), (503, b"gone"), (200, b"<html>")]
)
async def test_a_sick_replica_is_left_for_one_that_answers(status: int, body: Any) -> None:
    server = Slurmrestd()
    server.answers = {"GET jobs/state/": only_a(status, body)}
    slurm = client(server, "a", "b")
    await READ(slurm)
    await READ(slurm)
    assert server.asked == ["a GET jobs/state/", "b GET jobs/state/", "b GET jobs/state/"]


async def test_a_replica_that_cannot_even_be_greeted_is_left_too() -> None:
    server = Slurmrestd()
    server.answers = {"GET ping/": only_a(511, fault(1007)), "POST nodes/": (200, EMPTY)}
    await WRITES[0][1](client(server, "a", "b"))
    assert server.asked[-1] == "b POST nodes/"


@pytest.mark.parametrize(("asked", "act"), WRITES)
async def test_a_change_that_may_have_happened_is_left_to_the_next_pass_and_replica(asked: str, act: Act) -> None:
    server = Slurmrestd()
    server.answers = {asked: only_a(504, fault(5004))}
    slurm = client(server, "a", "b")
    with pytest.raises(Unreachable):
        await act(slurm)
    assert server.asked == [f"a {asked}"]
    await act(slurm)
    assert server.asked[1:] == [f"b {asked}"]


async def test_a_change_whose_token_was_refused_goes_to_the_next_replica() -> None:
    server = Slurmrestd()
    server.answers = {"POST nodes/": only_a(511, fault(1007))}
    await WRITES[0][1](client(server, "a", "b"))
    assert server.asked == ["a POST nodes/", "b POST nodes/"]


async def test_a_refusal_by_slurm_is_the_same_everywhere() -> None:
    server = Slurmrestd()
    server.answers = {"POST nodes/": (422, fault(2010))}
    slurm = client(server, "a", "b")
    with pytest.raises(Refused):
        await WRITES[0][1](slurm)
    assert server.asked == ["a POST nodes/"]
    assert slurm.transport.servers[0] == "http://a:6820"


async def test_when_all_are_sick_two_are_asked_and_each_gets_its_turn() -> None:
    server = Slurmrestd()
    server.answers = {"GET jobs/state/": (511, fault(1007))}
    slurm = client(server, "a", "b", "c")
    for _ in range(2):
        with pytest.raises(Unauthorized):
            await READ(slurm)
    assert [asked[0] for asked in server.asked] == ["a", "b", "c", "a"]


async def test_calls_that_fail_together_do_not_bring_the_sick_replica_back() -> None:
    server = Slurmrestd()
    server.answers = {"GET jobs/state/": only_a(503, b"gone")}
    slurm = client(server, "a", "b")
    await asyncio.gather(*(READ(slurm) for _ in range(4)))
    assert slurm.transport.servers[0] == "http://b:6820"


async def test_an_address_that_is_none_is_a_slurm_error() -> None:
    slurm = SlurmClient(Transport(["http://fd00::1:6820"], lambda: "token", http=Slurmrestd().http))
    with pytest.raises(SlurmError):
        await slurm.ping()


def of_cluster(name: str) -> dict[str, Any]:
    return {"jobs": [], "meta": {"slurm": {"cluster": name}}, **EMPTY}


def checked(server: Slurmrestd, *hosts: str, now: list[float]) -> SlurmClient:
    servers = [f"http://{host}:6820" for host in hosts or ("a",)]
    return SlurmClient(Transport(servers, lambda: "t", cluster="Ours", http=server.http, clock=lambda: now[0]))


async def test_an_answer_of_another_cluster_is_an_error_and_never_data() -> None:
    server = Slurmrestd()
    server.answers = {"GET ping/": (200, of_cluster("ours")), "GET jobs/state/": (200, of_cluster("theirs"))}
    with pytest.raises(WrongCluster, match="cluster theirs answered instead of Ours"):
        await checked(server, now=[0.0]).jobs_state()


async def test_another_replica_is_asked_when_the_address_of_one_belongs_to_another_cluster() -> None:
    server = Slurmrestd()
    server.answers = {
        "GET ping/": lambda request: (200, of_cluster("theirs" if request.url.host == "a" else "ours")),
        "GET jobs/state/": (200, of_cluster("ours")),
    }
    assert await checked(server, "a", "b", now=[0.0]).jobs_state() == ()
    assert "a GET jobs/state/" not in server.asked


@pytest.mark.parametrize(("asked", "act"), WRITES)
async def test_nothing_is_changed_in_a_cluster_that_took_over_the_address(asked: str, act: Act) -> None:
    server, now = Slurmrestd(), [0.0]
    server.answers = {"GET ping/": (200, of_cluster("ours")), asked: (200, EMPTY)}
    slurm = checked(server, now=now)
    await act(slurm)
    now[0] += IDENTITY + 1
    server.answers["GET ping/"] = (200, of_cluster("theirs"))
    with pytest.raises(WrongCluster):
        await act(slurm)
    assert server.asked.count(f"a {asked}") == 1


async def test_that_nothing_has_changed_counts_only_from_our_own_cluster() -> None:
    server, now = Slurmrestd(), [0.0]
    server.answers = {"GET ping/": (200, of_cluster("ours")), "GET nodes/?update_time=7": (304, b"")}
    slurm = checked(server, now=now)
    assert await slurm.nodes(since=7) is None
    now[0] += IDENTITY + 1
    server.answers["GET ping/"] = (200, of_cluster("theirs"))
    with pytest.raises(WrongCluster):
        await slurm.nodes(since=7)
