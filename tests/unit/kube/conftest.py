"""The client that most tests of it begin with."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.unit.kube.clients import World


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    await made.follow()
    yield made
    for task in made.tasks:
        task.cancel()
    await asyncio.gather(*made.tasks, return_exceptions=True)
