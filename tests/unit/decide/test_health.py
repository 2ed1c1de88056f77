"""Slurm nodes and pods that lost each other."""

from tests.support.workers import seen, slurm_node, slurmd, worker

from kubeslurm.decide.facts import PodInfo
from kubeslurm.decide.health import fence_reason, orphans, suspects, unregistered


def test_an_admins_drain_outlives_the_pod() -> None:
    drained = slurm_node(1, "IDLE", "DRAIN", reason="bad fan")
    assert orphans([drained], {"gpu-1"}).delete == ()
    assert orphans([drained], set()).delete == ("gpu-1",)


def test_a_fenced_node_is_not_fenced_again() -> None:
    found = orphans([slurm_node(1, "DOWN", "COMPLETING")], set())
    assert (found.fence, found.delete) == ((), ())


def test_a_fence_names_the_pod() -> None:
    assert fence_reason(slurm_node(1)) == "slurm-operator: Pod (slurm/gpu-1) is gone"


def test_a_busy_worker_with_another_container_than_slurm_knows_is_suspect() -> None:
    restarted = worker(1, "MIXED", status=slurmd(container="containerd://2"))
    replaced = worker(2, "MIXED", uid="another")
    assert suspects([restarted, replaced, worker(3, "MIXED")]) == [restarted, replaced]


def test_an_idle_or_fenced_or_unknown_worker_is_no_suspect() -> None:
    other = slurmd(container="containerd://2")
    foreign = worker(3, "MIXED", status=other, slurm={"comment": "racked by hand"})
    old_style = worker(4, "MIXED", status=other, slurm={"comment": PodInfo("slurm", "gpu-4").text})
    assert suspects([worker(1, status=other), worker(2, "DOWN", "MIXED", status=other), foreign, old_style]) == []


def test_an_unregistered_worker_is_started_afresh_one_at_a_time() -> None:
    lost = [worker(n, absent=True) for n in (1, 2)]
    fine = [worker(n) for n in range(3, 12)]
    assert unregistered(seen(*lost, *fine), {"gpu-1": 3, "gpu-2": 3}, ()) == [lost[0]]


def test_nobody_is_restarted_when_slurmctld_has_lost_its_memory() -> None:
    view = seen(*(worker(n, absent=True) for n in range(4)))
    assert unregistered(view, {f"gpu-{n}": 99 for n in range(4)}, ()) == []


def test_absence_must_be_confirmed_before_a_restart() -> None:
    assert unregistered(seen(worker(1, absent=True)), {"gpu-1": 2}, ()) == []


def test_the_only_worker_may_be_restarted() -> None:
    lost = worker(1, absent=True)
    assert unregistered(seen(lost), {"gpu-1": 3}, ()) == [lost]


def test_nobody_is_unregistered_while_slurm_does_not_answer() -> None:
    assert unregistered(seen(worker(1), known=False), {"gpu-1": 99}, ()) == []
