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


async def test_an_event_has_the_object_the_reason_and_the_reporter() -> None:
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


async def test_an_event_repeated_much_later_is_a_new_one() -> None:
    async with recording() as recorder:
        recorder.events.normal(POD, "Created", "created pod")
        await asyncio.sleep(SERIES_SECONDS + 60)
        recorder.events.normal(POD, "Created", "created pod")
        await asyncio.sleep(1)
        assert len(recorder.stored()) == 2


async def test_the_events_of_one_object_are_limited() -> None:
    async with recording() as recorder:
        for number in range(500):
            recorder.events.normal(POD, "Noise", f"message {number}")
        await asyncio.sleep(1)
        assert len(recorder.stored()) == PER_OBJECT_BURST


async def test_a_refused_event_does_not_hold_up_the_next() -> None:
    async with recording() as recorder:
        recorder.server.fail(403)
        recorder.events.normal(POD, "Lost", "this one is lost")
        recorder.events.normal(POD, "Kept", "this one is not")
        await asyncio.sleep(1)
        assert [event["reason"] for event in recorder.stored()] == ["Kept"]


async def test_events_of_cluster_scoped_objects_are_in_the_default_namespace() -> None:
    async with recording() as recorder:
        recorder.events.normal(Node(metadata=ObjectMeta(name="n1", uid="u2")), "Drained", "drained")
        await asyncio.sleep(1)
        (event,) = recorder.stored()
        assert event["metadata"]["namespace"] == "default"
        assert "namespace" not in event["regarding"]


async def test_a_long_note_is_cut_to_the_limit_of_the_server() -> None:
    async with recording() as recorder:
        recorder.events.normal(POD, "Long", "x" * 5000)
        await asyncio.sleep(1)
        (request,) = (request for request in recorder.server.requests if request.method == "POST")
        assert len(json.loads(request.content)["note"]) == 1024
