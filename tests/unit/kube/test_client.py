"""Objects made, read, changed and deleted, and how soon the stores show it."""

import pytest

from kubeslurm.api.kinds import CONFIGMAP, NODE, POD
from kubeslurm.engine.controller import Retry
from kubeslurm.engine.key import Key
from kubeslurm.kube.errors import AlreadyExists, Conflict
from tests.support.fake_apiserver import config_map, pod
from tests.unit.kube.clients import KEY, PLACE, World

pytestmark = pytest.mark.looptime


async def test_creating_a_name_twice_says_so(world: World) -> None:
    await world.kube.create(pod("a", labels={"app": "slurmd"}))
    assert Key("ns", "a") in world.pods
    with pytest.raises(AlreadyExists):
        await world.kube.create(pod("a"))


async def test_an_object_that_the_watch_would_not_show_stays_out_of_the_store(world: World) -> None:
    await world.kube.create(pod("other", labels={"app": "web"}))
    assert len(world.pods) == 0


async def test_a_patch_is_seen_at_once(world: World) -> None:
    await world.kube.create(pod("a", labels={"app": "slurmd"}))
    world.server.frozen = True
    await world.kube.patch(POD, Key("ns", "a"), {"metadata": {"annotations": {"x": "y"}}})
    assert world.pods[Key("ns", "a")].metadata.annotations == {"x": "y"}


async def test_a_graceful_delete_shows_the_object_as_terminating(world: World) -> None:
    await world.kube.create(pod("a", labels={"app": "slurmd"}))
    await world.kube.delete(POD, Key("ns", "a"))
    assert world.pods[Key("ns", "a")].deleting


async def test_an_immediate_delete_is_seen_at_once_and_for_good(world: World) -> None:
    await world.kube.create(pod("a", labels={"app": "slurmd"}))
    await world.settle()
    world.server.frozen = True
    await world.server.put(pod("a", labels={"app": "slurmd"}, annotations={"late": "change"}))
    await world.kube.delete(POD, Key("ns", "a"), grace=0)
    assert len(world.pods) == 0
    world.server.frozen = False
    await world.server.bookmark()
    seen: list[str] = []
    world.pods.subscribe(lambda key, _old, _new: seen.append(key.name))
    await world.settle()
    assert seen == []


async def test_a_delete_with_a_uid_spares_a_namesake(world: World) -> None:
    await world.kube.create(pod("a", labels={"app": "slurmd"}))
    with pytest.raises(Conflict):
        await world.kube.delete(POD, Key("ns", "a"), uid="another")
    assert Key("ns", "a") in world.pods


async def test_deleting_what_is_gone_is_success(world: World) -> None:
    await world.kube.delete(POD, Key("ns", "nobody"))


async def test_a_finalizer_is_added_once_and_removed_once(world: World) -> None:
    await world.kube.apply(config_map("conf", {}))
    held = await world.kube.add_finalizer(CONFIGMAP, world.maps[KEY], "kubeslurm.dev/hold")
    again = await world.kube.add_finalizer(CONFIGMAP, held, "kubeslurm.dev/hold")
    assert again is held
    assert world.maps[KEY].metadata.finalizers == ("kubeslurm.dev/hold",)
    await world.kube.delete(CONFIGMAP, KEY)
    assert world.maps[KEY].deleting
    await world.kube.remove_finalizer(CONFIGMAP, world.maps[KEY], "kubeslurm.dev/hold")
    assert KEY not in world.maps
    await world.settle()
    assert KEY not in world.maps
    assert PLACE not in world.server.objects


async def test_a_finalizer_on_an_outdated_object_is_a_conflict(world: World) -> None:
    await world.kube.apply(config_map("conf", {}))
    outdated = world.maps[KEY]
    await world.server.put(config_map("conf", {"new": "1"}), plural="configmaps")
    with pytest.raises(Conflict) as caught:
        await world.kube.add_finalizer(CONFIGMAP, outdated, "kubeslurm.dev/hold")
    assert isinstance(caught.value, Retry), "a reconcile just tries again"


async def test_lists_are_read_page_by_page(world: World) -> None:
    for number in range(1201):
        await world.server.put(pod(f"p{number}"))
    assert len(await world.kube.list(POD, "ns")) == 1201
    assert world.server.count("GET", "limit=500") == 3


async def test_a_missing_namespace_is_a_mistake_of_ours(world: World) -> None:
    with pytest.raises(ValueError, match="needs a namespace"):
        await world.kube.get(POD, Key("", "a"))
    assert await world.kube.get(NODE, Key("", "n1")) is None


async def test_the_whole_object_can_be_had(world: World) -> None:
    await world.server.put(pod("a") | {"spec": {"unknown": {"to": "us"}}})
    tree = await world.kube.get_tree(POD, Key("ns", "a"))
    assert tree is not None
    assert tree["spec"] == {"unknown": {"to": "us"}}
    assert await world.kube.get_tree(POD, Key("ns", "nobody")) is None
