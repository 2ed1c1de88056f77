"""Objects created, read, changed and deleted, and how soon the stores show it."""

import pytest

from kubeslurm.api.kinds import CONFIGMAP, NODE, POD
from kubeslurm.engine.controller import Retry
from kubeslurm.engine.key import Key
from kubeslurm.kube.errors import AlreadyExists, Conflict
from tests.support.fake_apiserver import config_map, pod
from tests.unit.kube.clients import ADDRESS, KEY, Cluster

pytestmark = pytest.mark.looptime


async def test_creating_a_name_twice_is_an_error(cluster: Cluster) -> None:
    await cluster.kube.create(pod("a", labels={"app": "slurmd"}))
    assert Key("ns", "a") in cluster.pods
    with pytest.raises(AlreadyExists):
        await cluster.kube.create(pod("a"))


async def test_an_object_that_the_watch_would_not_show_stays_out_of_the_store(cluster: Cluster) -> None:
    await cluster.kube.create(pod("other", labels={"app": "web"}))
    assert len(cluster.pods) == 0


async def test_a_patch_is_seen_at_once(cluster: Cluster) -> None:
    await cluster.kube.create(pod("a", labels={"app": "slurmd"}))
    cluster.server.frozen = True
    await cluster.kube.patch(POD, Key("ns", "a"), {"metadata": {"annotations": {"x": "y"}}})
    assert cluster.pods[Key("ns", "a")].metadata.annotations == {"x": "y"}


async def test_a_graceful_delete_shows_the_object_as_terminating(cluster: Cluster) -> None:
    await cluster.kube.create(pod("a", labels={"app": "slurmd"}))
    await cluster.kube.delete(POD, Key("ns", "a"))
    assert cluster.pods[Key("ns", "a")].deleting


async def test_an_immediate_delete_is_seen_at_once_and_not_undone_by_a_late_event(cluster: Cluster) -> None:
    await cluster.kube.create(pod("a", labels={"app": "slurmd"}))
    await cluster.settle()
    cluster.server.frozen = True
    await cluster.server.put(pod("a", labels={"app": "slurmd"}, annotations={"late": "change"}))
    await cluster.kube.delete(POD, Key("ns", "a"), grace=0)
    assert len(cluster.pods) == 0
    cluster.server.frozen = False
    await cluster.server.bookmark()
    seen: list[str] = []
    cluster.pods.subscribe(lambda key, _old, _new: seen.append(key.name))
    await cluster.settle()
    assert seen == []


async def test_a_delete_with_a_uid_does_not_delete_another_object_of_that_name(cluster: Cluster) -> None:
    await cluster.kube.create(pod("a", labels={"app": "slurmd"}))
    with pytest.raises(Conflict):
        await cluster.kube.delete(POD, Key("ns", "a"), uid="another")
    assert Key("ns", "a") in cluster.pods


async def test_deleting_an_object_that_is_gone_is_no_error(cluster: Cluster) -> None:
    await cluster.kube.delete(POD, Key("ns", "nobody"))


async def test_a_finalizer_is_added_once_and_removed_once(cluster: Cluster) -> None:
    await cluster.kube.apply(config_map("conf", {}))
    held = await cluster.kube.add_finalizer(CONFIGMAP, cluster.maps[KEY], "kubeslurm.dev/hold")
    again = await cluster.kube.add_finalizer(CONFIGMAP, held, "kubeslurm.dev/hold")
    assert again is held
    assert cluster.maps[KEY].metadata.finalizers == ("kubeslurm.dev/hold",)
    await cluster.kube.delete(CONFIGMAP, KEY)
    assert cluster.maps[KEY].deleting
    await cluster.kube.remove_finalizer(CONFIGMAP, cluster.maps[KEY], "kubeslurm.dev/hold")
    assert KEY not in cluster.maps
    await cluster.settle()
    assert KEY not in cluster.maps
    assert ADDRESS not in cluster.server.objects


async def test_a_finalizer_on_an_outdated_object_is_a_conflict(cluster: Cluster) -> None:
    await cluster.kube.apply(config_map("conf", {}))
    outdated = cluster.maps[KEY]
    await cluster.server.put(config_map("conf", {"new": "1"}), plural="configmaps")
    with pytest.raises(Conflict) as caught:
        await cluster.kube.add_finalizer(CONFIGMAP, outdated, "kubeslurm.dev/hold")
    assert isinstance(caught.value, Retry), "the reconcile is tried again"


async def test_lists_are_read_page_by_page(cluster: Cluster) -> None:
    for number in range(1201):
        await cluster.server.put(pod(f"p{number}"))
    assert len(await cluster.kube.list(POD, "ns")) == 1201
    assert cluster.server.count("GET", "limit=500") == 3


async def test_a_missing_namespace_is_a_programming_error(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match="needs a namespace"):
        await cluster.kube.get(POD, Key("", "a"))
    assert await cluster.kube.get(NODE, Key("", "n1")) is None


async def test_the_whole_object_can_be_read(cluster: Cluster) -> None:
    await cluster.server.put(pod("a") | {"spec": {"unknown": {"to": "us"}}})
    tree = await cluster.kube.get_tree(POD, Key("ns", "a"))
    assert tree is not None
    assert tree["spec"] == {"unknown": {"to": "us"}}
    assert await cluster.kube.get_tree(POD, Key("ns", "nobody")) is None
