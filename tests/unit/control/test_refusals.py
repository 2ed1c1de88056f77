"""Workers whose pods the API server refuses."""

from typing import Any

import pytest

from kubeslurm.api.meta import Tree
from kubeslurm.api.resource import Resource
from kubeslurm.control.refusals import FIRST_COOLDOWN, LONGEST_COOLDOWN, Refusals
from kubeslurm.kube.errors import Invalid
from tests.support.world import World

CAUSE = {"reason": "FieldValueRequired", "field": "spec.containers[0].image", "message": "Required value"}
REFUSAL = Invalid(422, "Invalid", 'Pod "gpu-0" is invalid', details={"kind": "Pod", "causes": [CAUSE]})


class Choosy:
    """Counts the pods that are asked for, and takes none without an image."""

    def __init__(self, world: World) -> None:
        self.asked = 0
        self._create = world.kube.create
        world.kube.create = self.create  # type: ignore[method-assign]

    async def create(self, tree: Tree) -> Resource:
        if tree["kind"] == "Pod":
            self.asked += 1
            if "image" not in tree["spec"]["containers"][0]:
                raise REFUSAL
        return await self._create(tree)


@pytest.fixture
async def world() -> World:
    return World()


async def test_a_refused_worker_is_told_and_not_asked_for_in_every_pass(world: World) -> None:
    server = Choosy(world)
    world.nodeset(replicas=100, slurmd={})
    await world.turn()
    assert world.message("Degraded").endswith('Pod "gpu-0" is invalid; set spec.slurmd.image')
    asked = server.asked
    assert asked < 100, "what is wrong with one is wrong with all"
    await world.turn(5)
    assert server.asked == asked
    assert world.message("Degraded").endswith("set spec.slurmd.image"), "still told"


async def test_a_corrected_nodeset_gets_its_workers_at_once(world: World) -> None:
    Choosy(world)
    world.nodeset(replicas=2, slurmd={})
    await world.turn()
    world.nodeset(replicas=2)
    await world.turn(3)
    assert world.pod_names() == ["gpu-0", "gpu-1"]
    assert world.message("Degraded") == ""


async def test_a_worker_lost_under_a_quota_is_replaced_at_once(world: World) -> None:
    create = world.kube.create

    async def within_quota(tree: Tree) -> Resource:
        if tree["kind"] == "Pod" and len(world.kube.pods()) >= 2:
            raise REFUSAL
        return await create(tree)

    world.kube.create = within_quota  # type: ignore[method-assign]
    world.nodeset(replicas=3)
    await world.turn(3)
    assert world.pod_names() == ["gpu-0", "gpu-1"]
    world.kill_pod("gpu-1")
    await world.turn()
    assert world.pod_names() == ["gpu-0", "gpu-1"]


async def test_what_is_known_of_a_nodeset_ends_with_it(world: World) -> None:
    Choosy(world)
    world.nodeset(replicas=2, slurmd={})
    await world.turn()
    refusals = world.reconciler.act._create._refusals
    assert refusals._known
    assert refusals._cooldown
    world.delete_nodeset()
    await world.turn(3)
    assert not refusals._known
    assert not refusals._cooldown


def test_the_pause_grows_while_nothing_changes_and_begins_anew_with_a_change() -> None:
    now = 0.0
    refusals = Refusals(lambda: now)

    def pause(state: Any) -> float:
        nonlocal now
        refusals.add("uid", state, "no")
        start = now
        while refusals.current("uid", state):
            now += 1.0
        return now - start

    assert [pause(1) for _ in range(8)] == [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, LONGEST_COOLDOWN, LONGEST_COOLDOWN]
    assert refusals.current("uid", 2) == ""
    assert pause(2) == FIRST_COOLDOWN
