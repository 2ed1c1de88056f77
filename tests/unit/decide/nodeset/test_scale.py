"""How many workers are missing or too many."""

from kubeslurm.decide.nodeset.scale import BURST, missing, surplus
from tests.support.workers import drained_by_us, worker


def test_missing_workers_get_the_lowest_free_ordinals() -> None:
    assert missing(5, [worker(1), worker(3)]) == [0, 2, 4]


def test_a_terminating_worker_still_holds_its_place_and_its_ordinal() -> None:
    assert missing(2, [worker(0), worker(1, deleting=True)]) == []
    assert missing(3, [worker(0, deleting=True), worker(1)]) == [2]


def test_workers_of_the_other_mode_hold_no_place() -> None:
    assert missing(1, [worker(0, mode="DaemonSet")]) == [0]


def test_creation_is_bounded_per_pass() -> None:
    assert len(missing(1000, [])) == BURST


def test_nothing_is_surplus_when_the_count_is_right() -> None:
    assert surplus(2, [worker(0), worker(1)]) == []


def test_the_most_dispensable_workers_are_surplus() -> None:
    workers = [worker(0, ready=False), worker(1), worker(2)]
    assert [each.name for each in surplus(1, workers)] == ["gpu-0", "gpu-2"]


def test_a_worker_that_is_terminating_anyway_is_not_counted_twice() -> None:
    assert surplus(2, [worker(0), worker(1), worker(2, deleting=True)]) == []


def test_a_worker_that_is_being_drained_for_scale_in_stays_the_choice() -> None:
    draining = worker(0, "MIXED", "DRAIN", annotations=drained_by_us("scale-in"))
    idle = worker(2)
    assert surplus(2, [draining, worker(1), idle]) == [draining]


def test_scaling_to_zero_takes_everybody() -> None:
    assert len(surplus(0, [worker(0), worker(1), worker(2)])) == 3
