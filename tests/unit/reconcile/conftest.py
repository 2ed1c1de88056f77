"""The world that most tests of a NodeSet begin in."""

import pytest

from tests.support.world import World


@pytest.fixture
async def world() -> World:
    """Two workers, gpu-0 and gpu-1, that Slurm knows and that have nothing to do."""
    world = World()
    world.nodeset(replicas=2)
    await world.turn(6)
    return world
