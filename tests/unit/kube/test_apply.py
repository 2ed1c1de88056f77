"""An apply is sent when it would change something, and only then."""

import pytest

from kubeslurm.api.kinds import CONFIGMAP
from kubeslurm.engine.key import Key
from kubeslurm.kube import applied
from tests.support.fake_apiserver import config_map, pod
from tests.unit.kube.clients import ADDRESS, KEY, MANAGER, Cluster

pytestmark = pytest.mark.looptime


async def test_a_write_is_in_the_store_at_once(cluster: Cluster) -> None:
    cluster.server.frozen = True
    await cluster.kube.apply(config_map("conf", {"a": "1"}))
    assert cluster.maps[KEY].data == {"a": "1"}


async def test_an_apply_that_would_change_nothing_is_not_sent(cluster: Cluster) -> None:
    for _ in range(5):
        await cluster.kube.apply(config_map("conf", {"a": "1"}))
        await cluster.settle()
    assert cluster.applies == 1


async def test_a_changed_tree_is_sent(cluster: Cluster) -> None:
    await cluster.kube.apply(config_map("conf", {"a": "1"}))
    await cluster.kube.apply(config_map("conf", {"a": "2"}))
    await cluster.kube.apply(config_map("conf", {"a": "1"}))
    assert cluster.applies == 3


async def test_an_edit_by_someone_else_is_repaired_once(cluster: Cluster) -> None:
    await cluster.kube.apply(config_map("conf", {"a": "1"}))
    await cluster.server.edit(ADDRESS, {"data": {"a": "edited"}})
    await cluster.settle()
    for _ in range(3):
        await cluster.kube.apply(config_map("conf", {"a": "1"}))
        await cluster.settle()
    assert cluster.applies == 2
    assert cluster.maps[KEY].data["a"] == "1"


async def test_a_field_of_ours_that_someone_removed_is_restored(cluster: Cluster) -> None:
    await cluster.kube.apply(config_map("conf", {"a": "1", "b": "2"}))
    await cluster.server.edit(ADDRESS, {"data": {"b": None}})
    await cluster.settle()
    await cluster.kube.apply(config_map("conf", {"a": "1", "b": "2"}))
    assert cluster.applies == 2


async def test_an_edit_of_fields_that_are_not_ours_is_left_alone(cluster: Cluster) -> None:
    await cluster.kube.apply(config_map("conf", {"a": "1"}))
    await cluster.server.edit(ADDRESS, {"data": {"theirs": "x"}, "metadata": {"labels": {"theirs": "x"}}})
    await cluster.settle()
    await cluster.kube.apply(config_map("conf", {"a": "1"}))
    assert cluster.applies == 1


async def test_a_deleted_object_is_applied_again(cluster: Cluster) -> None:
    await cluster.kube.apply(config_map("conf", {"a": "1"}))
    await cluster.server.remove("conf", plural="configmaps")
    await cluster.settle()
    await cluster.kube.apply(config_map("conf", {"a": "1"}))
    assert KEY in cluster.maps
    assert cluster.applies == 2


async def test_two_field_managers_do_not_share_their_records(cluster: Cluster) -> None:
    await cluster.kube.apply(config_map("conf", {"a": "1"}))
    other = cluster.kube.named("kubeslurm-nodeset")
    await other.apply(config_map("conf", {"a": "1"}))
    assert cluster.applies == 2
    assert cluster.server.count("PATCH", "fieldManager=kubeslurm-nodeset") == 1


async def test_a_dry_run_changes_neither_server_nor_store_nor_records(cluster: Cluster) -> None:
    answer = await cluster.kube.apply(config_map("conf", {"a": "1"}), dry_run=True)
    assert answer["dry"]
    assert len(cluster.maps) == 0
    await cluster.kube.apply(config_map("conf", {"a": "1"}))
    assert len(cluster.maps) == 1


async def test_fields_of_a_former_manager_become_ours_before_the_first_apply(cluster: Cluster) -> None:
    old = {"manager": "manager", "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:old": {}}}}
    await cluster.server.put(
        config_map("conf", {"old": "1"}) | {"metadata": {"namespace": "ns", "name": "conf", "managedFields": [old]}},
        plural="configmaps",
    )
    await cluster.settle()
    await cluster.kube.apply(config_map("conf", {"a": "1"}))
    await cluster.kube.apply(config_map("conf", {"a": "2"}))
    json_patches = [r for r in cluster.server.requests if "json-patch" in r.headers.get("Content-Type", "")]
    assert len(json_patches) == 1
    managers = [each["manager"] for each in cluster.server.objects[ADDRESS]["metadata"]["managedFields"]]
    assert managers == [MANAGER]


async def test_objects_that_are_gone_leave_no_records(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applied, "PRUNE_FROM", 3)
    cluster.kube = cluster.kube.named("kubeslurm-other")
    await cluster.kube.apply(config_map("kept", {"a": "1"}))
    for number in range(50):
        await cluster.kube.apply(config_map(f"gone-{number}", {"a": "1"}))
        await cluster.kube.delete(CONFIGMAP, Key("ns", f"gone-{number}"))
    assert len(cluster.kube._applied) <= 3
    before = cluster.applies
    await cluster.kube.apply(config_map("kept", {"a": "1"}))
    assert cluster.applies == before, "the record of an object that exists stays"


async def test_an_object_that_no_store_has_leaves_no_record(cluster: Cluster) -> None:
    for _ in range(2):
        await cluster.kube.apply(pod("other", labels={"app": "web"}))
    assert cluster.applies == 2
    assert len(cluster.kube._applied) == 0
