import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kubeslurm.api.meta import ObjectMeta
from kubeslurm.api.views import Node, Pod
from kubeslurm.kube.events import FLUSH_SECONDS, PER_OBJECT_BURST, SERIES_SECONDS, Events
from tests.support.fake_apiserver import FakeApiServer

pytestmark = pytest.mark.looptime

POD = Pod(metadata=ObjectMeta(namespace="ns", name="worker-0", uid="u1", resourceVersion="5"))


class Recorder:
    def __init__(self) -> None:
        self.server = FakeApiServer()
        self.events = Events(self.server.connection(), clock=asyncio.get_running_loop().time)
        self.task = asyncio.create_task(self.events.run())

    def stored(self) -> list[dict[str, Any]]:
        return [tree for place, tree in self.server.objects.items() if place.plural == "events"]


@asynccontextmanager
async def recording() -> AsyncIterator[Recorder]:
    made = Recorder()
    yield made
    assert not made.task.done()
    made.task.cancel()
    await asyncio.gather(made.task, return_exceptions=True)


async def test_an_event_tells_who_said_what_about_which_object() -> None:
    async with recording() as recorder:
        recorder.events.warning(POD, "DrainFailed", "slurmctld refused the drain: try again", action="Drain")
        await asyncio.sleep(1)
        (event,) = recorder.stored()
        assert event["regarding"] == {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "ns",
            "name": "worker-0",
            "uid": "u1",
            "resourceVersion": "5",
        }
        assert (event["type"], event["reason"], event["action"]) == ("Warning", "DrainFailed", "Drain")
        assert event["note"] == "slurmctld refused the drain: try again"
        assert event["reportingController"] == "kubeslurm"
        assert event["reportingInstance"]
        assert event["eventTime"].endswith("Z")


async def test_repetitions_are_counted_in_one_event() -> None:
    async with recording() as recorder:
        for _ in range(100):
            recorder.events.normal(POD, "Waiting", "waiting for the job to end")
            await asyncio.sleep(1)
        await asyncio.sleep(FLUSH_SECONDS)
        (event,) = recorder.stored()
        assert event["series"]["count"] == 100
        assert recorder.server.count("POST") == 1
        assert recorder.server.count("PATCH") <= 5


async def test_an_event_said_again_much_later_is_a_new_one() -> None:
    async with recording() as recorder:
        recorder.events.normal(POD, "Created", "created pod")
        await asyncio.sleep(SERIES_SECONDS + 60)
        recorder.events.normal(POD, "Created", "created pod")
        await asyncio.sleep(1)
        assert len(recorder.stored()) == 2


async def test_a_chatty_object_is_cut_short() -> None:
    async with recording() as recorder:
        for number in range(500):
            recorder.events.normal(POD, "Noise", f"message {number}")
        await asyncio.sleep(1)
        assert len(recorder.stored()) == PER_OBJECT_BURST


async def test_a_server_that_refuses_events_hurts_nobody() -> None:
    async with recording() as recorder:
        recorder.server.fail(403)
        recorder.events.normal(POD, "Lost", "this one is lost")
        recorder.events.normal(POD, "Kept", "this one is not")
        await asyncio.sleep(1)
        assert [event["reason"] for event in recorder.stored()] == ["Kept"]


async def test_events_of_cluster_scoped_objects_live_in_default() -> None:
    async with recording() as recorder:
        recorder.events.normal(Node(metadata=ObjectMeta(name="n1", uid="u2")), "Drained", "drained")
        await asyncio.sleep(1)
        (event,) = recorder.stored()
        assert event["metadata"]["namespace"] == "default"
        assert "namespace" not in event["regarding"]


async def test_a_long_note_is_cut_to_what_the_server_takes() -> None:
    async with recording() as recorder:
        recorder.events.normal(POD, "Long", "x" * 5000)
        await asyncio.sleep(1)
        (request,) = (request for request in recorder.server.requests if request.method == "POST")
        assert len(json.loads(request.content)["note"]) == 1024
