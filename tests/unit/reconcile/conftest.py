"""The worlds that most tests of a NodeSet, and of a Controller, begin in."""

from collections.abc import AsyncIterator

import pytest

from tests.support.controlplane import ControlPlane
from tests.support.world import World


@pytest.fixture
async def world() -> World:
    """Two workers, gpu-0 and gpu-1, that Slurm knows and that have nothing to do."""
    world = World()
    world.nodeset(replicas=2)
    await world.turn(6)
    return world


@pytest.fixture
async def plane() -> AsyncIterator[ControlPlane]:
    """A Controller with its keys, before its first pass."""
    made = ControlPlane()
    await made.start()
    await made.make_keys()
    await made.make_controller()
    yield made
    await made.stop()
