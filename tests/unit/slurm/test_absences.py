"""How often in a row a node was looked for and not seen, from which its end is concluded."""

from kubeslurm.slurm.snapshot import APART, REMEMBERED, REMEMBERED_LISTS
from tests.unit.slurm.script import A, B, listed, make


async def test_absence_is_counted_in_full_lists_only() -> None:
    snapshot, script, clock = make()
    script.lists = [listed(A, B), listed(A), None, listed(A), listed(A, B)]
    for expected in (0, 1, 1, 2, 0):
        clock.now += APART
        await snapshot.poll()
        assert snapshot.absences("b") == expected


async def test_lists_asked_for_before_a_moment_do_not_count() -> None:
    snapshot, script, clock = make()
    script.lists = [listed(A)] * 4
    for _ in range(3):
        await snapshot.poll()
        clock.now += APART
    assert snapshot.absences("young") == 3
    assert snapshot.absences("young", since=clock.now) == 0
    await snapshot.poll()
    assert snapshot.absences("young", since=clock.now) == 1


async def test_many_lists_in_a_moment_are_one_look() -> None:
    snapshot, script, clock = make()
    script.lists = [listed(A, B), *[listed(A)] * 200]
    await snapshot.poll()
    for _ in range(120):
        clock.now += 0.5
        await snapshot.poll()
    assert snapshot.absences("b") == 2
    clock.now += 0.5
    await snapshot.poll()
    assert snapshot.absences("b") == 3


async def test_a_single_read_of_a_node_ends_its_absence() -> None:
    snapshot, script, clock = make()
    script.singles = {"b": B}
    script.lists = [listed(A)] * 2
    for _ in range(2):
        await snapshot.poll()
        clock.now += APART
    assert snapshot.absences("b") == 2
    await snapshot.refresh(["b"])
    assert snapshot.absences("b") == 0


async def test_a_busy_or_a_slow_cluster_is_remembered_long_enough() -> None:
    for pause in (0.5, 500.0):
        snapshot, script, clock = make()
        script.lists = [listed(A)] * 3000
        for _ in range(3000):
            await snapshot.poll()
            clock.now += pause
        assert REMEMBERED / APART <= snapshot.absences("b") <= REMEMBERED_LISTS
