from dataclasses import dataclass, replace

import pytest

from kubeslurm.engine.store import TOMBSTONE_SECONDS, Store
from tests.support.clock import HandClock


@dataclass(frozen=True)
class Thing:
    name: str
    version: int
    uid: str = "u1"
    owners: tuple[str, ...] = ()


@pytest.fixture
def clock() -> HandClock:
    return HandClock(0.0)


@pytest.fixture
def store(clock: HandClock) -> Store[str, Thing]:
    return Store(
        lambda thing: thing.name,
        indices={"owner": lambda thing: thing.owners},
        version=lambda thing: thing.version,
        identity=lambda thing: thing.uid,
        clock=clock,
    )


def version(thing: Thing | None) -> int | None:
    return thing.version if thing is not None else None


@pytest.fixture
def changes(store: Store[str, Thing]) -> list[tuple[str, int | None, int | None]]:
    seen: list[tuple[str, int | None, int | None]] = []
    store.subscribe(lambda key, old, new: seen.append((key, version(old), version(new))))
    return seen


Changes = list[tuple[str, int | None, int | None]]


def test_listeners_are_called_for_new_changed_and_removed_objects(store: Store[str, Thing], changes: Changes) -> None:
    store.put(Thing("a", 1))
    store.put(Thing("a", 2))
    store.remove("a", version=3)
    assert changes == [("a", None, 1), ("a", 1, 2), ("a", 2, None)]
    assert len(store) == 0
    assert "a" not in store


def test_an_older_or_equal_version_changes_nothing(store: Store[str, Thing], changes: Changes) -> None:
    store.observe_write(Thing("a", 5))
    assert not store.put(Thing("a", 4))
    assert not store.put(Thing("a", 5))
    assert changes == [("a", None, 5)]


def test_an_answer_that_comes_after_the_deletion_does_not_bring_the_object_back(store: Store[str, Thing]) -> None:
    store.put(Thing("a", 1))
    store.remove("a", version=7)
    assert not store.observe_write(Thing("a", 6))
    assert store.get("a") is None


def test_a_watch_event_of_an_object_that_we_deleted_does_not_bring_it_back(store: Store[str, Thing]) -> None:
    store.put(Thing("a", 1))
    store.observe_delete(Thing("a", 1))
    assert not store.put(Thing("a", 9)), "it was changed once more before our delete; its uid is known to be gone"
    assert store.put(Thing("a", 10, uid="u2")), "a new object of the same name is another one"


def test_the_delete_of_an_object_does_not_remove_a_newer_one_of_the_same_name(store: Store[str, Thing]) -> None:
    store.put(Thing("a", 10, uid="u2"))
    store.observe_delete(Thing("a", 5, uid="u1"))
    assert store.get("a") == Thing("a", 10, uid="u2")


def test_tombstones_last_a_minute(store: Store[str, Thing], clock: HandClock) -> None:
    store.put(Thing("a", 1))
    store.remove("a", version=7)
    clock.now = TOMBSTONE_SECONDS + 1
    store.put(Thing("b", 2))
    store.remove("b", version=8)
    assert store.put(Thing("a", 6))


def test_a_removal_that_is_older_than_what_is_known_is_ignored(store: Store[str, Thing]) -> None:
    store.observe_write(Thing("a", 9, uid="u2"))
    assert not store.remove("a", version=8)
    assert "a" in store


def test_replacing_calls_listeners_for_differences_only_and_deletes_what_is_missing(
    store: Store[str, Thing], changes: Changes
) -> None:
    for name in "abc":
        store.put(Thing(name, 1))
    changes.clear()
    store.replace([Thing("a", 1), Thing("b", 4), Thing("d", 5)], version=6)
    assert sorted(changes, key=str) == [("b", 1, 4), ("c", 1, None), ("d", None, 5)]


def test_replacing_keeps_what_we_wrote_after_the_list_was_taken(store: Store[str, Thing]) -> None:
    store.observe_write(Thing("new", 12))
    store.observe_write(Thing("changed", 11))
    store.replace([Thing("changed", 3)], version=10)
    assert store.get("new") == Thing("new", 12)
    assert store.get("changed") == Thing("changed", 11)


def test_a_late_answer_about_an_object_that_a_list_no_longer_showed_is_ignored(store: Store[str, Thing]) -> None:
    """Created by us and deleted by someone else before the watch showed it: no event will ever remove it again."""
    store.replace([], version=10)
    assert not store.observe_write(Thing("a", 9))
    assert store.observe_write(Thing("b", 11))


def test_a_list_does_not_affect_keys_that_it_could_not_show(store: Store[str, Thing]) -> None:
    store.retain(set(), version=10, within=lambda key: key == "mine", source="partial")
    assert store.observe_write(Thing("other", 9))
    assert not store.observe_write(Thing("mine", 9))


def test_a_restored_backup_is_taken_over_although_its_versions_are_older(
    store: Store[str, Thing], changes: Changes
) -> None:
    store.put(Thing("kept", 50))
    store.put(Thing("lost", 51))
    changes.clear()
    store.reset([Thing("kept", 20), Thing("back", 21)])
    assert sorted(changes, key=str) == [("back", None, 21), ("kept", 50, 20), ("lost", 51, None)]


def test_an_index_follows_the_object(store: Store[str, Thing]) -> None:
    store.put(Thing("a", 1, owners=("x", "y")))
    store.put(Thing("b", 2, owners=("x",)))
    assert {thing.name for thing in store.by("owner", "x")} == {"a", "b"}
    store.put(Thing("a", 3, owners=("y", "z")))
    assert {thing.name for thing in store.by("owner", "x")} == {"b"}
    assert store.count("owner", "z") == 1
    store.remove("a", version=4)
    assert store.by("owner", "y") == ()
    assert store.count("owner", "z") == 0


def test_an_index_shows_the_newest_object(store: Store[str, Thing]) -> None:
    store.put(Thing("a", 1, owners=("x",)))
    store.put(Thing("a", 2, owners=("x",)))
    assert [thing.version for thing in store.by("owner", "x")] == [2]


def test_an_index_added_later_covers_the_objects_that_were_there(store: Store[str, Thing]) -> None:
    store.put(Thing("a", 1))
    store.add_index("uid", lambda thing: [thing.uid])
    assert [thing.name for thing in store.by("uid", "u1")] == ["a"]
    store.put(Thing("a", 2, uid="u2"))
    assert store.by("uid", "u1") == ()


def test_an_index_may_return_a_value_twice(store: Store[str, Thing], changes: Changes) -> None:
    store.put(Thing("a", 1, owners=("red", "red")))
    store.put(Thing("a", 2, owners=("blue", "blue")))
    assert (list(store.by("owner", "red")), [each.name for each in store.by("owner", "blue")]) == ([], ["a"])
    store.remove("a")
    assert (changes[-1], list(store.by("owner", "blue"))) == (("a", 2, None), [])


def test_an_unknown_index_is_an_error_that_names_the_known_ones(store: Store[str, Thing]) -> None:
    with pytest.raises(KeyError, match="owner"):
        store.by("color", "red")


def test_the_result_of_an_index_can_be_iterated_while_the_store_changes(store: Store[str, Thing]) -> None:
    for number in range(3):
        store.put(Thing(f"t{number}", number + 1, owners=("x",)))
    for thing in store.by("owner", "x"):
        store.remove(thing.name, version=thing.version)
    for thing in store:
        store.remove(thing.name)
    assert len(store) == 0


def test_without_versions_equal_objects_are_no_change() -> None:
    plain: Store[str, Thing] = Store(lambda thing: thing.name)
    seen: list[str] = []
    plain.subscribe(lambda key, _old, _new: seen.append(key))
    plain.replace([Thing("a", 1), Thing("b", 1)])
    plain.replace([Thing("a", 1), replace(Thing("b", 1), uid="other")])
    assert seen == ["a", "b", "b"]
    assert plain.remove("a")
    assert plain.put(Thing("a", 1)), "a polled object may come back"


async def test_a_store_is_synced_when_all_its_sources_are(store: Store[str, Thing]) -> None:
    store.await_source("ns1")
    store.await_source("ns2")
    store.mark_synced("ns1")
    assert not store.synced
    store.mark_synced("ns2")
    await store.wait_synced()
    assert store.synced
