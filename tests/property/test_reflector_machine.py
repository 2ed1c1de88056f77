"""After any failures of a watch, the store equals a new list and every change was reconciled."""

import asyncio
from typing import Any

import hypothesis.strategies as st
import looptime
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, rule

from kubeslurm.api.kinds import POD
from kubeslurm.api.views import Pod
from kubeslurm.engine.controller import Controller
from kubeslurm.engine.key import Key
from kubeslurm.engine.store import Store
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.errors import ApiError
from kubeslurm.kube.objects import key_of
from tests.support.fake_apiserver import FakeApiServer, pod
from tests.support.fake_storage import Address

NAMES = st.sampled_from("abcde")


class ReflectorMachine(RuleBasedStateMachine):
    """A reflector, a controller and a client on a server that fails in many ways."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = looptime.patch_event_loop(asyncio.SelectorEventLoop())
        self.run(self.start())

    def run(self, action: Any) -> Any:
        return self.loop.run_until_complete(action)

    async def start(self) -> None:
        self.server = FakeApiServer()
        connection = self.server.connection()
        caches = Caches(connection)
        self.store: Store[Key, Pod] = caches.add(POD)
        self.kube = Kube(connection, caches, manager="kubeslurm-test")
        self.reconciled: dict[Key, str | None] = {}
        controller = Controller("machine", self.reconcile, window=0.3)
        controller.watch(self.store, lambda obj: [key_of(obj)])
        ((_, reflector),) = caches.reflectors
        self.tasks = [asyncio.create_task(reflector.run()), asyncio.create_task(controller.run())]

    async def reconcile(self, key: Key) -> None:
        obj = self.store.get(key)
        self.reconciled[key] = obj.metadata.resourceVersion if obj else None

    @rule(name=NAMES, number=st.integers())
    def write(self, name: str, number: int) -> None:
        self.run(self.server.put(pod(name, annotations={"n": str(number)})))

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        if Address("pods", "ns", name) in self.server.objects:
            self.run(self.server.remove(name))

    @rule(name=NAMES, number=st.integers())
    def write_ourselves(self, name: str, number: int) -> None:
        async def act() -> None:
            try:
                await self.kube.patch(POD, Key("ns", name), {"metadata": {"annotations": {"n": str(number)}}})
            except ApiError:
                return

        self.run(act())

    @rule(name=NAMES)
    def delete_ourselves(self, name: str) -> None:
        async def act() -> None:
            try:
                await self.kube.delete(POD, Key("ns", name), grace=0)
            except ApiError:
                return

        self.run(act())

    @rule(name=NAMES)
    def write_nonsense(self, name: str) -> None:
        self.run(self.server.send(b'{"type":"MODIFIED","object":{"metadata":{"name":5}}}'))

    @rule()
    def cut(self) -> None:
        self.run(self.server.cut())

    @rule()
    def compact(self) -> None:
        self.server.compact()
        self.run(asyncio.sleep(0))

    @rule(frozen=st.booleans())
    def freeze(self, frozen: bool) -> None:
        self.server.frozen = frozen

    @rule(status=st.sampled_from([0, 410, 429, 500]), times=st.integers(1, 3))
    def fail(self, status: int, times: int) -> None:
        self.server.fail(status, times=times)

    @rule(on=st.booleans())
    def watch_list(self, on: bool) -> None:
        self.server.watch_list = on

    @rule()
    def bookmark(self) -> None:
        self.run(self.server.bookmark())

    @rule(seconds=st.sampled_from([0.0, 0.1, 1.0, 30.0, 100.0]))
    def wait(self, seconds: float) -> None:
        self.run(asyncio.sleep(seconds))

    @rule()
    def settle(self) -> None:
        """Let the server work without failures for a while; then everything must be as on the server."""
        self.server.frozen = False
        self.server.failures.clear()
        self.run(asyncio.sleep(300))
        expected = {
            Key(place.namespace, place.name): tree["metadata"]["resourceVersion"]
            for place, tree in self.server.objects.items()
        }
        assert {key_of(obj): obj.metadata.resourceVersion for obj in self.store} == expected
        known = {key: version for key, version in self.reconciled.items() if version is not None}
        assert known == expected, "a change was not reconciled"

    def teardown(self) -> None:
        self.settle()
        for task in self.tasks:
            assert not task.done()
            task.cancel()
        self.run(asyncio.gather(*self.tasks, return_exceptions=True))
        self.run(self.loop.shutdown_asyncgens())
        self.loop.close()


TestReflector = ReflectorMachine.TestCase
TestReflector.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
