"""What is applied: sent when it would change something, and only then."""

import pytest

from tests.support.fake_apiserver import config_map
from tests.unit.kube.clients import KEY, MANAGER, PLACE, World

pytestmark = pytest.mark.looptime


async def test_the_next_pass_reads_what_was_just_written(world: World) -> None:
    world.server.frozen = True
    await world.kube.apply(config_map("conf", {"a": "1"}))
    assert world.maps[KEY].data == {"a": "1"}


async def test_an_apply_that_would_change_nothing_is_not_sent(world: World) -> None:
    for _ in range(5):
        await world.kube.apply(config_map("conf", {"a": "1"}))
        await world.settle()
    assert world.applies == 1


async def test_a_new_wish_is_sent(world: World) -> None:
    await world.kube.apply(config_map("conf", {"a": "1"}))
    await world.kube.apply(config_map("conf", {"a": "2"}))
    await world.kube.apply(config_map("conf", {"a": "1"}))
    assert world.applies == 3


async def test_an_edit_by_someone_else_is_repaired_once(world: World) -> None:
    await world.kube.apply(config_map("conf", {"a": "1"}))
    await world.server.edit(PLACE, {"data": {"a": "edited"}})
    await world.settle()
    for _ in range(3):
        await world.kube.apply(config_map("conf", {"a": "1"}))
        await world.settle()
    assert world.applies == 2
    assert world.maps[KEY].data["a"] == "1"


async def test_a_field_of_ours_that_someone_removed_is_restored(world: World) -> None:
    await world.kube.apply(config_map("conf", {"a": "1", "b": "2"}))
    await world.server.edit(PLACE, {"data": {"b": None}})
    await world.settle()
    await world.kube.apply(config_map("conf", {"a": "1", "b": "2"}))
    assert world.applies == 2


async def test_an_edit_of_fields_that_are_not_ours_is_left_alone(world: World) -> None:
    await world.kube.apply(config_map("conf", {"a": "1"}))
    await world.server.edit(PLACE, {"data": {"theirs": "x"}, "metadata": {"labels": {"theirs": "x"}}})
    await world.settle()
    await world.kube.apply(config_map("conf", {"a": "1"}))
    assert world.applies == 1


async def test_a_deleted_object_is_applied_again(world: World) -> None:
    await world.kube.apply(config_map("conf", {"a": "1"}))
    await world.server.remove("conf", plural="configmaps")
    await world.settle()
    await world.kube.apply(config_map("conf", {"a": "1"}))
    assert KEY in world.maps
    assert world.applies == 2


async def test_two_field_managers_do_not_share_their_memory(world: World) -> None:
    await world.kube.apply(config_map("conf", {"a": "1"}))
    other = world.kube.named("kubeslurm-nodeset")
    await other.apply(config_map("conf", {"a": "1"}))
    assert world.applies == 2
    assert world.server.count("PATCH", "fieldManager=kubeslurm-nodeset") == 1


async def test_a_dry_run_changes_neither_server_nor_store_nor_memory(world: World) -> None:
    answer = await world.kube.apply(config_map("conf", {"a": "1"}), dry_run=True)
    assert answer["dry"]
    assert len(world.maps) == 0
    await world.kube.apply(config_map("conf", {"a": "1"}))
    assert len(world.maps) == 1


async def test_fields_of_the_predecessor_become_ours_before_the_first_apply(world: World) -> None:
    old = {"manager": "manager", "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:old": {}}}}
    await world.server.put(
        config_map("conf", {"old": "1"}) | {"metadata": {"namespace": "ns", "name": "conf", "managedFields": [old]}},
        plural="configmaps",
    )
    await world.settle()
    await world.kube.apply(config_map("conf", {"a": "1"}))
    await world.kube.apply(config_map("conf", {"a": "2"}))
    json_patches = [r for r in world.server.requests if "json-patch" in r.headers.get("Content-Type", "")]
    assert len(json_patches) == 1
    managers = [each["manager"] for each in world.server.objects[PLACE]["metadata"]["managedFields"]]
    assert managers == [MANAGER]
