"""What is derived from a controller's registration."""

from collections.abc import Iterable
from typing import Any

from kubeslurm.api.kinds import NODE, NODESET, POD
from kubeslurm.control.registration import Context, Index, Registration, Watch, is_deletion, own_key
from kubeslurm.control.rights import on
from kubeslurm.engine.controller import Controller, Requeue
from kubeslurm.engine.key import Key
from tests.support.world import SET, World

HOSTS_BY_NAME = Index(NODE, "by-name", lambda node: (node.name,))


class Idle:
    """A reconciler that finds nothing to do."""

    def __init__(self, context: Context) -> None:
        self.context = context

    async def reconcile(self, key: Key) -> Requeue | None:
        return None


def registration(*watches: Watch[Any], **fields: Any) -> Registration:
    return Registration(name="example", make=Idle, watches=watches, **fields)


def started(world: World, example: Registration) -> Controller:
    controller = Controller("example", example.make(world.context).reconcile)
    example.start_watches(world.context, controller)
    return controller


def queued(controller: Controller) -> set[Key]:
    found: set[Key] = set()
    while (key := controller._queue.take()) is not None:
        controller._queue.done(key)
        found.add(key)
    return found


def test_what_is_watched_or_read_is_cached_and_may_be_listed() -> None:
    example = registration(Watch(POD, own_key), reads=(NODE,), rights=(on(POD, "delete"),))
    assert example.cached == {POD, NODE}
    verbs = {(rule.resource, verb) for rule in example.rules for verb in rule.verbs}
    assert {("pods", "watch"), ("pods", "list"), ("nodes", "watch"), ("nodes", "list"), ("pods", "delete")} == verbs


def test_whoever_serves_a_kind_may_write_its_status_and_finalizers() -> None:
    example = registration(Watch(NODESET, own_key), kind=NODESET)
    verbs = {(rule.resource, verb) for rule in example.rules for verb in rule.verbs}
    assert {("nodesets/status", "patch"), ("nodesets/finalizers", "update"), ("nodesets", "patch")} <= verbs


def test_the_setting_for_the_concurrency_is_named_after_the_controller_unless_said_otherwise() -> None:
    assert registration().flag == "example_workers"
    assert registration(concurrency_flag="other").flag == "other_workers"


def test_a_changed_object_enqueues_the_keys_that_it_concerns() -> None:
    world = World(hosts=1)

    def of_nodeset(context: Context, nodeset: Any) -> Iterable[Key]:
        return (Key(*nodeset.controller_key),)

    controller = started(world, registration(Watch(NODESET, of_nodeset)))
    world.nodeset(replicas=1)
    assert queued(controller) == {Key("slurm", "main")}


def test_a_watch_for_deletions_ignores_other_changes() -> None:
    world = World(hosts=1)
    controller = started(world, registration(Watch(NODESET, own_key, when=is_deletion)))
    world.nodeset(replicas=1)
    world.nodeset(replicas=2)
    assert queued(controller) == set()
    world.kube.remove(NODESET, SET)
    assert queued(controller) == {SET}


def test_an_index_finds_the_objects_under_a_value() -> None:
    world = World(hosts=2)
    registration(indices=(HOSTS_BY_NAME,)).add_indices(world.caches)
    assert [node.name for node in HOSTS_BY_NAME.get(world.caches, "host-1")] == ["host-1"]
    assert HOSTS_BY_NAME.count(world.caches, "host-7") == 0
