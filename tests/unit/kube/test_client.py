import asyncio
from typing import Any

import pytest
from prometheus_client import REGISTRY

from kubeslurm.api.kinds import CONFIGMAP, NODE, POD
from kubeslurm.api.views import ConfigMap, Pod
from kubeslurm.engine.controller import Retry
from kubeslurm.engine.key import Key
from kubeslurm.engine.store import Store
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.errors import AlreadyExists, Conflict, Fenced, NotFound, Throttled, Unavailable
from kubeslurm.kube.fence import Fence
from tests.support.fake_apiserver import Address, FakeApiServer, config_map, pod

pytestmark = pytest.mark.looptime

KEY = Key("ns", "conf")
PLACE = Address("configmaps", "ns", "conf")
MANAGER = "kubeslurm-controller"


class World:
    """A client with stores that reflectors keep up to date."""

    def __init__(self, **connection: Any) -> None:
        self.server = FakeApiServer()
        self.connection = self.server.connection(**connection)
        self.caches = Caches(self.connection)
        self.maps: Store[Key, ConfigMap] = self.caches.add(CONFIGMAP)
        self.pods: Store[Key, Pod] = self.caches.add(POD, labels={"app": "slurmd"})
        self.kube = Kube(self.connection, self.caches, manager=MANAGER)
        self.tasks: list[asyncio.Task[None]] = []

    async def follow(self) -> None:
        self.tasks = [asyncio.create_task(reflector.run()) for _, reflector in self.caches.reflectors]
        for _, store in self.caches.stores:
            await store.wait_synced()

    async def settle(self) -> None:
        await asyncio.sleep(0.1)

    @property
    def applies(self) -> int:
        return self.server.count("PATCH", "force=true")


@pytest.fixture
async def world() -> Any:
    made = World()
    await made.follow()
    yield made
    for task in made.tasks:
        task.cancel()
    await asyncio.gather(*made.tasks, return_exceptions=True)


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


async def test_reads_are_tried_again_when_the_server_is_busy(world: World) -> None:
    world.server.fail(429, Retry_After="2")
    world.server.fail(503)
    world.server.fail(0)
    assert await world.kube.get(POD, Key("ns", "nobody")) is None
    assert world.server.count("GET", "pods/nobody") == 4


async def test_reads_give_up_after_some_attempts(world: World) -> None:
    world.server.fail(503, times=20)
    with pytest.raises(Unavailable):
        await world.kube.list(POD)
    world.server.failures.clear()


async def test_writes_are_sent_once_and_carry_the_servers_wish_to_the_queue(world: World) -> None:
    world.server.fail(429, Retry_After="7")
    with pytest.raises(Throttled) as caught:
        await world.kube.create(pod("a"))
    assert caught.value.after == 7
    assert world.server.count("POST") == 1


async def test_every_call_has_a_deadline(world: World) -> None:
    world.server.delay = 3600
    loop = asyncio.get_running_loop()
    started = loop.time()
    with pytest.raises(Unavailable, match="within 10 s"):
        await world.kube.create(pod("a"))
    assert loop.time() - started == pytest.approx(10)


async def test_only_so_many_writes_run_at_the_same_time() -> None:
    world = World(writes=3)
    world.server.delay = 1
    loop = asyncio.get_running_loop()
    started = loop.time()
    await asyncio.gather(*(world.kube.create(pod(f"p{number}")) for number in range(9)))
    assert loop.time() - started == pytest.approx(3)


async def test_no_write_starts_after_the_renew_deadline() -> None:
    loop = asyncio.get_running_loop()
    fence = Fence(clock=loop.time)
    world = World(fence=fence)
    with pytest.raises(Fenced):
        await world.kube.create(pod("before"))
    fence.extend(loop.time() + 10, loop.time() + 15)
    await world.kube.create(pod("during"))
    await asyncio.sleep(10)
    with pytest.raises(Fenced):
        await world.kube.create(pod("after"))
    assert world.server.count("POST") == 1


async def test_a_write_that_waited_for_its_turn_is_refused_when_leadership_is_over() -> None:
    loop = asyncio.get_running_loop()
    fence = Fence(clock=loop.time)
    fence.extend(loop.time() + 10, loop.time() + 15)
    world = World(writes=1, fence=fence)
    world.server.delay = 9
    results = await asyncio.gather(
        *(world.kube.create(pod(f"p{number}")) for number in range(3)), return_exceptions=True
    )
    assert [isinstance(result, Exception) for result in results] == [False, True, True]
    assert isinstance(results[1], Unavailable), "it started in time, and was cut off before another leader may begin"
    assert isinstance(results[2], Fenced)
    assert loop.time() <= 15 + 1e-6


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


async def test_requests_are_counted_by_verb_kind_and_code(world: World) -> None:
    labels = {"verb": "patch", "kind": "Pod", "code": "404"}
    before = REGISTRY.get_sample_value("kubeslurm_api_requests_total", labels) or 0
    with pytest.raises(NotFound):
        await world.kube.patch(POD, Key("ns", "nobody"), {})
    assert REGISTRY.get_sample_value("kubeslurm_api_requests_total", labels) == before + 1
