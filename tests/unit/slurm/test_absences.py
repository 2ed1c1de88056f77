"""How many full lists in a row lack a node, which is how its absence is proven."""

from kubeslurm.slurm.snapshot import ABSENCE_INTERVAL, HISTORY, HISTORY_LISTS
from tests.unit.slurm.script import A, B, listed, make


async def test_absence_is_counted_in_full_lists_only() -> None:
    snapshot, script, clock = make()
    script.lists = [listed(A, B), listed(A), None, listed(A), listed(A, B)]
    for expected in (0, 1, 1, 2, 0):
        clock.now += ABSENCE_INTERVAL
        await snapshot.poll()
        assert snapshot.absences("b") == expected


async def test_lists_asked_for_before_a_moment_do_not_count() -> None:
    snapshot, script, clock = make()
    script.lists = [listed(A)] * 4
    for _ in range(3):
        await snapshot.poll()
        clock.now += ABSENCE_INTERVAL
    assert snapshot.absences("young") == 3
    assert snapshot.absences("young", since=clock.now) == 0
    await snapshot.poll()
    assert snapshot.absences("young", since=clock.now) == 1


async def test_lists_that_follow_each_other_fast_count_once() -> None:
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
        clock.now += ABSENCE_INTERVAL
    assert snapshot.absences("b") == 2
    await snapshot.refresh(["b"])
    assert snapshot.absences("b") == 0


async def test_the_history_of_a_busy_or_slow_cluster_is_long_enough() -> None:
    for pause in (0.5, 500.0):
        snapshot, script, clock = make()
        script.lists = [listed(A)] * 3000
        for _ in range(3000):
            await snapshot.poll()
            clock.now += pause
        assert HISTORY / ABSENCE_INTERVAL <= snapshot.absences("b") <= HISTORY_LISTS
