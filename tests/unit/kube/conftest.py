"""The client that most tests of the client start with."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.unit.kube.clients import Cluster


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    made = Cluster()
    await made.follow()
    yield made
    for task in made.tasks:
        task.cancel()
    await asyncio.gather(*made.tasks, return_exceptions=True)
