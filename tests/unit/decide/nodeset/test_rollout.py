"""Which old workers a rolling update replaces now."""

import pytest

from kubeslurm.api import names
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.api.slinky.strategy import RollingUpdate, UpdateStrategy
from kubeslurm.decide.nodeset.rollout import max_unavailable, replaced
from kubeslurm.decide.nodeset.worker import Worker
from tests.support.workers import drained_by_us, facts, nodeset, worker

OLD = "old"


def rolling(limit: int | str) -> NodeSet:
    return nodeset(updateStrategy=UpdateStrategy(rollingUpdate=RollingUpdate(maxUnavailable=limit)))


def names_of(workers: list[Worker]) -> list[str]:
    return [each.name for each in workers]


@pytest.mark.parametrize(
    ("value", "total", "allowed"),
    [
        ("25%", 4, 1),
        ("25%", 5, 2),
        ("1%", 3, 1),
        ("100%", 3, 3),
        (2, 10, 2),
        (0, 10, 1),
        ("nonsense", 10, 1),
        ("25%", 0, 1),
    ],
)
def test_percentages_are_rounded_up_and_one_may_always_be_away(value: int | str, total: int, allowed: int) -> None:
    assert max_unavailable(value, total) == allowed


def test_no_more_than_the_budget_is_replaced_at_once() -> None:
    view = facts(*(worker(n, revision=OLD) for n in range(4)))
    assert names_of(replaced(rolling(2), view, 4, ())) == ["gpu-3", "gpu-2"]


def test_a_worker_that_is_being_drained_uses_up_the_budget() -> None:
    busy = worker(0, "MIXED", "DRAIN", revision=OLD, annotations=drained_by_us("update"))
    view = facts(busy, worker(1, revision=OLD), worker(2, revision=OLD))
    assert replaced(rolling(1), view, 3, ()) == [busy]


def test_the_choice_stays_when_another_worker_becomes_idle() -> None:
    busy = worker(2, "ALLOCATED", "DRAIN", revision=OLD, annotations=drained_by_us("update"))
    assert names_of(replaced(rolling(1), facts(worker(0, revision=OLD), busy), 2, ())) == ["gpu-2"]


def test_a_missing_worker_uses_up_the_budget() -> None:
    view = facts(worker(0, revision=OLD), worker(1, revision=OLD))
    assert replaced(rolling(1), view, 3, ()) == []


def test_a_new_worker_that_is_not_ready_uses_up_the_budget() -> None:
    view = facts(worker(0, revision=OLD), worker(1, ready=False))
    assert replaced(rolling(1), view, 2, ()) == []


def test_a_new_worker_counts_only_after_min_ready_seconds() -> None:
    view = facts(worker(0, revision=OLD), worker(1, ready_for=5))
    waiting = nodeset(minReadySeconds=10, updateStrategy=UpdateStrategy(rollingUpdate=RollingUpdate(maxUnavailable=1)))
    assert replaced(waiting, view, 2, ()) == []


def test_old_workers_that_do_not_serve_are_replaced_outside_the_budget() -> None:
    dead = [worker(n, "DOWN", "NOT_RESPONDING", revision=OLD, ready=False) for n in (0, 1)]
    assert replaced(rolling(1), facts(*dead, worker(2, revision=OLD)), 3, ()) == dead


def test_workers_that_only_look_ill_are_drained_within_the_budget() -> None:
    """A kubelet or an API server that hiccups makes all workers look not ready while their jobs run."""
    view = facts(*(worker(n, "ALLOCATED", revision=OLD, ready=False) for n in range(8)))
    assert len(replaced(rolling(2), view, 8, ())) == 2


def test_a_set_that_is_not_ready_as_a_whole_can_still_be_mended() -> None:
    view = facts(*(worker(n, revision=OLD, ready=False) for n in range(3)))
    assert len(replaced(rolling(1), view, 3, ())) == 1


def test_a_budget_that_is_lowered_releases_what_it_no_longer_allows() -> None:
    busy = [worker(n, "MIXED", "DRAIN", revision=OLD, annotations=drained_by_us("update")) for n in range(4)]
    assert len(replaced(rolling(1), facts(*busy), 4, ())) == 1


def test_workers_that_leave_for_another_cause_are_not_chosen() -> None:
    view = facts(worker(0, revision=OLD), worker(1, revision=OLD))
    assert names_of(replaced(rolling(1), view, 1, {"gpu-1"})) == ["gpu-0"]


def test_workers_that_started_with_other_files_are_outdated_too() -> None:
    old = worker(0, annotations={names.RESTART_HASH: "old"})
    known = facts(old, worker(1, annotations={names.RESTART_HASH: "new"}), startup_hashes={names.RESTART_HASH: "new"})
    assert names_of(replaced(rolling(1), known, 2, ())) == ["gpu-0"]


@pytest.mark.parametrize(
    "held", [nodeset(paused=True), nodeset(updateStrategy=UpdateStrategy(type="OnDelete"))], ids=["paused", "OnDelete"]
)
def test_nothing_is_replaced_when_the_user_holds_the_update(held: NodeSet) -> None:
    assert replaced(held, facts(worker(0, revision=OLD, ready=False)), 1, ()) == []


def test_an_update_of_ten_workers_drains_each_exactly_once() -> None:
    """Plays a rollout pass by pass: what is chosen is replaced, and nobody is chosen and then dropped."""
    workers = {n: worker(n, revision=OLD) for n in range(10)}
    chosen: list[str] = []
    for _ in range(20):
        now = names_of(replaced(rolling("25%"), facts(*workers.values()), 10, ()))
        assert len(now) <= 3
        chosen += [name for name in now if name not in chosen]
        for name in now:
            workers[int(name.removeprefix("gpu-"))] = worker(int(name.removeprefix("gpu-")))
    assert sorted(chosen) == sorted(f"gpu-{n}" for n in range(10))
