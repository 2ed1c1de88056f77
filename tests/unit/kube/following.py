"""A running reflector on an API server in memory."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kubeslurm.api.kinds import POD
from kubeslurm.api.views import Pod
from kubeslurm.engine.key import Key
from kubeslurm.engine.store import Store
from kubeslurm.kube.objects import kube_store
from kubeslurm.kube.reflector import Reflector
from tests.support.fake_apiserver import FakeApiServer


class Follower:
    """A running reflector, with the changes of its store."""

    def __init__(self, server: FakeApiServer, **options: Any) -> None:
        self.store: Store[Key, Pod] = kube_store()
        self.changes: list[tuple[str, str]] = []
        self.store.subscribe(self._record)
        self.reflector = Reflector(POD, self.store, server.connection(), **options)

    def _record(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        what = "added" if old is None else "deleted" if new is None else "changed"
        self.changes.append((what, key.name))

    @property
    def names(self) -> set[str]:
        return {each.name for each in self.store}


@asynccontextmanager
async def following(server: FakeApiServer, **options: Any) -> AsyncIterator[Follower]:
    follower = Follower(server, **options)
    task = asyncio.create_task(follower.reflector.run())
    try:
        yield follower
    finally:
        assert not task.done(), "a reflector never ends by itself"
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
