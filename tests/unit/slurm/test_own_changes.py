"""What we have read of one node or changed ourselves, against lists that were asked for earlier."""

from kubeslurm.slurm.rest.models import Node
from tests.unit.slurm.script import A, B, listed, make


async def test_a_single_read_is_not_undone_by_an_older_list() -> None:
    snapshot, script, _ = make()
    drained = Node(name="a", state=("IDLE", "DRAIN"))
    script.singles = {"a": drained, "b": None}
    script.lists = [listed(A, B), listed(A, B), listed(A)]
    await snapshot.poll()

    async def refresh() -> None:
        await snapshot.refresh(["a", "b"])

    script.meanwhile = refresh
    await snapshot.poll()
    assert snapshot.get("a") == drained
    assert snapshot.get("b") is None
    script.meanwhile = None
    script.clock.now += 1
    await snapshot.poll()
    assert snapshot.get("a") == A


async def test_a_deleted_record_is_gone_at_once_and_an_older_list_does_not_bring_it_back() -> None:
    snapshot, script, _ = make()
    script.lists = [listed(A, B), listed(A, B), listed(A, B)]
    await snapshot.poll()
    snapshot.forget(["b"])
    assert snapshot.get("b") is None

    async def deletion() -> None:
        snapshot.forget(["a"])

    script.meanwhile = deletion
    await snapshot.poll()
    assert snapshot.get("a") is None
    script.meanwhile = None
    script.clock.now += 1
    await snapshot.poll()
    assert snapshot.get("a") is A  # a slurmd has registered anew


async def test_a_change_of_ours_counts_as_made_until_a_later_answer_shows_the_node() -> None:
    snapshot, script, clock = make()
    script.lists = [listed(A), listed(A), None]

    async def change() -> None:
        clock.now += 1
        snapshot.wrote(["a"], "drain")

    script.meanwhile = change
    await snapshot.poll()
    assert snapshot.is_written("a", "drain")  # the list was asked for before
    assert not snapshot.is_written("a", "resume")
    assert not snapshot.is_written("b", "drain")
    script.meanwhile = None
    for _ in range(2):  # a list, and the word that nothing has changed
        snapshot.wrote(["a"], "drain")
        clock.now += 1
        await snapshot.poll()
        assert not snapshot.is_written("a", "drain")


async def test_a_single_read_or_a_deletion_ends_the_wait_for_a_change_of_ours() -> None:
    snapshot, script, clock = make()
    script.singles = {"a": A}
    snapshot.wrote(["a", "b"], "drain")
    clock.now += 1
    await snapshot.refresh(["a"])
    snapshot.forget(["b"])
    assert not snapshot.is_written("a", "drain")
    assert not snapshot.is_written("b", "drain")


async def test_a_refresh_tells_what_is_there_now() -> None:
    snapshot, script, _ = make()
    script.singles = {"a": A, "x": None}
    assert await snapshot.refresh(["a", "x"]) == {"a": A, "x": None}
    assert snapshot.get("a") == A
