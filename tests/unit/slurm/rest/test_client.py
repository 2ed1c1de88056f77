"""What the client asks and how it takes the answers; the real daemons are asked in tests/slurm."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from kubeslurm.slurm.errors import NotFound, NotServed, Refused, SlurmError, Unauthorized, Unreachable
from kubeslurm.slurm.rest.client import SlurmClient
from kubeslurm.slurm.rest.models import NodeUpdate
from kubeslurm.slurm.rest.transport import Transport
from tests.unit.slurm.slurmrestd import EMPTY, FakeSession, Slurmrestd

RECORDED = Path(__file__).parent / "recorded"


def client(server: Slurmrestd, *hosts: str) -> SlurmClient:
    servers = [f"http://{host}:6820" for host in hosts or ("a",)]
    return SlurmClient(Transport(servers, lambda: "token", http=server.http))


def fault(number: int) -> dict[str, Any]:
    return {"errors": [{"error_number": number, "error": "no"}], "warnings": []}


@pytest.mark.parametrize("version", ["v0.0.44", "v0.0.45"])
async def test_recorded_answers_are_understood(version: str) -> None:
    recorded = json.loads((RECORDED / f"{version}.json").read_text())
    server = Slurmrestd(version)
    server.answers = {
        "GET nodes/": (200, recorded["nodes"]),
        "GET node/nope": (200, recorded["unknown_node"]),
        "GET job/2": (200, recorded["job"]),
        "GET jobs/state/": (200, recorded["jobs_state"]),
        "GET ping/": (200, recorded["ping"]),
    }
    slurm = client(server)
    answer = await slurm.nodes()
    assert answer is not None
    assert [node.name for node in answer.nodes] == ["n1"]
    assert answer.last_update > 0
    assert await slurm.node("nope") is None
    job = await slurm.job(2)
    assert job is not None
    assert job.nodes == "n1"
    assert [row.job_id for row in await slurm.jobs_state()] == [2, 3, 1]
    assert [ping.responding for ping in await slurm.ping()] == [True]
    assert await slurm.release() == "26.05.5"


async def test_the_newest_version_is_found_once_and_kept() -> None:
    server = Slurmrestd("v0.0.44", "v0.0.43")
    server.answers = {"GET node/n": (200, {"nodes": [{"name": "n"}], **EMPTY})}
    slurm = client(server)
    await slurm.node("n")
    await slurm.node("n")
    assert await slurm.transport.version() == "v0.0.44"
    assert server.asked == ["a GET node/n"] * 2


async def test_an_upgraded_server_is_asked_for_its_version_again() -> None:
    server = Slurmrestd("v0.0.45")
    server.answers = {"GET node/n": (200, {"nodes": [{"name": "n"}], **EMPTY})}
    slurm = client(server)
    await slurm.node("n")
    server.versions = ("v0.0.46",)
    with pytest.raises(NotServed):
        await slurm.node("n")
    assert await slurm.node("n") is not None


async def test_a_server_that_is_too_old_says_what_is_needed() -> None:
    with pytest.raises(NotServed, match=r"25\.11 or newer"):
        await client(Slurmrestd("v0.0.41")).nodes()


async def test_a_lost_replica_is_left_for_the_next_and_not_asked_again() -> None:
    server = Slurmrestd()
    server.answers = {"GET jobs/state/": (200, EMPTY), "POST nodes/": (200, EMPTY)}
    slurm = client(server, "a", "b", "c")
    await slurm.jobs_state()
    server.down = {"a", "b"}
    await slurm.update_nodes(["n"], NodeUpdate.resume())
    await slurm.jobs_state()
    assert server.asked == ["a GET jobs/state/", "c POST nodes/", "c GET jobs/state/"]
    server.down = {"a", "b", "c"}
    with pytest.raises(Unreachable):
        await slurm.jobs_state()


async def test_a_write_that_may_have_happened_is_not_sent_twice() -> None:
    server = Slurmrestd()
    server.answers = {"POST nodes/": httpx2.ReadError("reset"), "GET jobs/state/": httpx2.ReadError("reset")}
    slurm = client(server, "a", "b")
    with pytest.raises(Unreachable):
        await slurm.update_nodes(["n"], NodeUpdate.resume())
    assert server.asked == ["a POST nodes/"]
    with pytest.raises(Unreachable):
        await slurm.jobs_state()
    assert server.asked[1:] == ["b GET jobs/state/", "a GET jobs/state/"]


async def test_new_replicas_are_taken_over_without_leaving_the_one_in_use() -> None:
    slurm = client(Slurmrestd(), "a", "b")
    slurm.transport.use(["http://c:6820/", "http://a:6820"])
    assert slurm.transport.servers == ("http://a:6820", "http://c:6820")


async def test_without_any_replica_slurm_is_unreachable() -> None:
    slurm = client(Slurmrestd())
    slurm.transport.use([])
    with pytest.raises(Unreachable):
        await slurm.nodes()


@pytest.mark.looptime
async def test_a_call_without_an_answer_ends_by_its_deadline() -> None:
    async def silence(_request: httpx2.Request) -> httpx2.Response:
        await asyncio.Event().wait()
        raise AssertionError

    slurm = Transport(["http://a", "http://b"], lambda: "t", http=FakeSession(silence))
    with pytest.raises(Unreachable, match=r"within 0\.05 s"):
        await slurm.call("GET", "nodes/", deadline=0.05)
    assert slurm.servers == ("http://b", "http://a")


async def test_names_are_sent_as_one_encoded_hostlist() -> None:
    server = Slurmrestd()
    server.answers = {"POST nodes/": (200, EMPTY), "DELETE node/n%5B1-3%5D": (200, EMPTY)}
    slurm = client(server)
    await slurm.update_nodes(["n3", "n1", "n2"], NodeUpdate.drain("x"))
    await slurm.delete_nodes(["n3", "n1", "n2"])
    assert server.bodies[0] == {"name": ["n[1-3]"], "state": ["DRAIN"], "reason": "slurm-operator: x"}


async def test_nothing_is_asked_for_no_nodes() -> None:
    server = Slurmrestd()
    await client(server).update_nodes([], NodeUpdate.resume())
    await client(server).delete_nodes([])
    assert server.asked == []


async def test_a_refused_batch_is_tried_node_by_node() -> None:
    server = Slurmrestd()

    def answer(request: httpx2.Request) -> tuple[int, Any]:
        return (422, fault(2018)) if b"n2" in request.content or b"[" in request.content[9:20] else (200, EMPTY)

    server.answers = {"POST nodes/": answer}
    with pytest.raises(NotFound):
        await client(server).update_nodes(["n1", "n2", "n3"], NodeUpdate.resume())
    assert [body["name"] for body in server.bodies] == [["n[1-3]"], ["n1"], ["n2"], ["n3"]]


async def test_a_node_that_is_already_gone_counts_as_deleted_but_a_busy_one_does_not() -> None:
    server = Slurmrestd()
    server.answers = {"DELETE node/gone": (422, fault(2018)), "DELETE node/busy": (422, fault(2016))}
    await client(server).delete_nodes(["gone"])
    with pytest.raises(Refused):
        await client(server).delete_nodes(["busy"])


async def test_resuming_what_is_fine_succeeds_but_another_bad_transition_does_not() -> None:
    server = Slurmrestd()
    server.answers = {"POST nodes/": (422, fault(2180))}
    await client(server).update_nodes(["n"], NodeUpdate.resume())
    with pytest.raises(Refused):
        await client(server).update_nodes(["n"], NodeUpdate.down("x"))


async def test_an_ignored_field_is_a_failure() -> None:
    server = Slurmrestd()
    server.answers = {"POST nodes/": (200, {"errors": [], "warnings": [{"description": "Expected string"}]})}
    with pytest.raises(Refused, match="ignored"):
        await client(server).update_nodes(["n"], NodeUpdate(comment="x"))


async def test_a_refused_token_is_unauthorized() -> None:
    server = Slurmrestd()
    server.answers = {"GET nodes/": (511, fault(1007))}
    with pytest.raises(Unauthorized):
        await client(server).nodes()


async def test_an_answer_of_another_shape_is_a_slurm_error() -> None:
    server = Slurmrestd()
    server.answers = {"GET nodes/": (200, {"nodes": [{"name": 5}], **EMPTY})}
    with pytest.raises(SlurmError, match="not understood"):
        await client(server).nodes()


UPDATED = {"last_update": {"set": True, "infinite": False, "number": 5}}


@pytest.mark.parametrize(
    "body",
    [
        EMPTY,
        {"nodes": [], **EMPTY},
        {**UPDATED, **EMPTY},
        {"nodes": [], "errors": [], "warnings": [{"description": "something was left out"}], **UPDATED},
        {"nodes": [{"name": "n"}], "errors": [], "warnings": [{"description": "something was left out"}], **UPDATED},
        {"nodes": [{"name": "n"}], "errors": [], "warnings": [{"description": "No nodes to dump"}], **UPDATED},
    ],
)
async def test_a_list_that_may_not_be_whole_is_a_failure_and_no_small_cluster(body: dict[str, Any]) -> None:
    server = Slurmrestd()
    server.answers = {"GET nodes/": (200, body)}
    with pytest.raises(SlurmError):
        await client(server).nodes()


async def test_a_cluster_that_has_no_nodes_yet_is_read_as_such() -> None:
    server = Slurmrestd()
    warned = {"nodes": [], "errors": [], "warnings": [{"description": "No nodes to dump", "source": ""}], **UPDATED}
    server.answers = {"GET nodes/": (200, warned)}
    answer = await client(server).nodes()
    assert answer is not None
    assert answer.nodes == ()


async def test_nothing_changed_is_no_answer_to_a_question_for_everything() -> None:
    server = Slurmrestd()
    server.answers = {"GET nodes/": (304, b"")}
    with pytest.raises(Unreachable):
        await client(server).nodes()


@pytest.mark.parametrize(
    "answer", [(404, b"not found"), (404, EMPTY), (200, EMPTY), (200, {"nodes": [], **EMPTY}), (200, b"")]
)
async def test_a_node_is_absent_only_if_slurm_says_so(answer: tuple[int, Any]) -> None:
    server = Slurmrestd()
    server.answers = {"GET node/n": answer, "DELETE node/n": (404, b"not found"), "POST nodes/": (404, b"not found")}
    with pytest.raises(SlurmError) as failure:
        await client(server).node("n")
    assert not isinstance(failure.value, NotFound)
    with pytest.raises(NotServed):
        await client(server).delete_nodes(["n"])
    with pytest.raises(NotServed):
        await client(server).update_nodes(["n"], NodeUpdate.resume())


async def test_a_server_without_the_live_configuration_or_requeue_says_so() -> None:
    server = Slurmrestd("v0.0.44")
    missing = (404, b"Unable to find requested URL endpoint.")
    job = {"jobs": [{"job_id": 1}], **EMPTY}
    server.answers = {"GET conf": missing, "GET job/1/requeue": missing, "GET job/1": (200, job)}
    assert await client(server).conf() is None
    with pytest.raises(Refused, match=r"26\.05"):
        await client(server).requeue_job(1)


async def test_bytes_that_are_not_text_cost_a_character_and_nothing_else() -> None:
    server = Slurmrestd()
    server.answers = {"GET node/n": (200, b'{"nodes": [{"name": "n", "reason": "caf\xe9"}], "errors": []}')}
    node = await client(server).node("n")
    assert node is not None
    assert node.reason == "caf\ufffd"


async def test_an_odd_job_id_does_not_hide_the_other_jobs() -> None:
    server = Slurmrestd()
    rows = [{"job_id": text, "state": ["RUNNING"]} for text in ("7_3", "12+0", "12+1", "", "what", "20_[1-5]")]
    server.answers = {"GET jobs/state/": (200, {"jobs": rows, **EMPTY})}
    assert {row.job_id for row in await client(server).jobs_state()} == {7, 12, 13, 20}


async def test_slurmctlds_clock_can_be_read_and_an_answer_without_it_is_none() -> None:
    server = Slurmrestd()
    server.answers["GET diag/"] = (200, {"statistics": {"req_time": {"set": True, "number": 1794795477}}, **EMPTY})
    assert await client(server).now() == 1794795477
    server.answers["GET diag/"] = (200, {"statistics": {"req_time": {"set": False, "number": 0}}, **EMPTY})
    with pytest.raises(Unreachable):
        await client(server).now()


async def test_unchanged_nodes_read_as_none() -> None:
    server = Slurmrestd()
    server.answers = {"GET nodes/?update_time=7": (304, b"")}
    assert await client(server).nodes(since=7) is None


async def test_cancelling_a_job_that_is_over_succeeds_and_a_forbidden_one_fails() -> None:
    server = Slurmrestd()
    over = {"status": [{"error": {"code": 2021, "string": "already completed"}}], **EMPTY}
    denied = {"status": [{"error": {"code": 2010, "string": "denied"}}], **EMPTY}
    server.answers = {"DELETE job/1": (200, over), "DELETE job/2": (200, denied)}
    await client(server).cancel_job(1)
    with pytest.raises(Refused, match="denied"):
        await client(server).cancel_job(2)
