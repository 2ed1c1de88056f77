"""Slurm nodes and pods that lost each other."""

from datetime import timedelta
from typing import Any

from kubeslurm.decide.nodeset.facts import PodInfo
from kubeslurm.decide.nodeset.health import (
    amnesia,
    fence_reason,
    is_of,
    orphans,
    suspects,
    unnamed,
    unregistered,
    verdict,
)
from kubeslurm.slurm.rest.models import Job, Node
from tests.support.workers import NOW, at, nodeset, seen, slurm_node, slurmd, worker


def test_an_admins_drain_outlives_the_pod() -> None:
    drained = slurm_node(1, "IDLE", "DRAIN", reason="bad fan")
    assert orphans([drained], {"gpu-1"}).delete == ()
    assert orphans([drained], set()).delete == ("gpu-1",)


def test_what_an_admin_decided_outlives_the_pod_inside_a_reason_of_ours() -> None:
    """The admin set the node down, a rollout drained it and took its pod away."""
    for state in (("DOWN", "DRAIN"), ("DOWN",)):
        down = slurm_node(1, *state, reason="slurm-operator: Pod (slurm/gpu-1) is pending (was: bad PSU)")
        assert orphans([down], {"gpu-1"}).delete == ()
        assert orphans([down], set()).delete == ("gpu-1",)


def test_a_record_without_a_comment_is_ours_if_slurmd_said_so() -> None:
    ours, theirs = {"comment": "", "extra": "nodeset:uid-gpu"}, {"comment": "", "extra": "nodeset:uid-other"}
    lost, busy = slurm_node(1, "IDLE", **ours), slurm_node(2, "MIXED", **ours)
    named = slurm_node(3, "DOWN", extra="nodeset:uid-gpu")
    assert unnamed(nodeset(), [lost, busy, named, slurm_node(4, "DOWN", **theirs)]) == [lost]
    assert unnamed(nodeset(), [lost], placed=False) == []


def test_a_record_without_a_comment_or_mark_is_ours_by_feature_name_and_silence() -> None:
    silent = ("DOWN", "NOT_RESPONDING")
    feature: dict[str, Any] = {"comment": "", "features": ("gpu",)}
    lost = slurm_node(1, *silent, **feature)
    answering, featureless = slurm_node(2, "DOWN", **feature), slurm_node(3, *silent, comment="")
    other_name = Node(name="host-1", state=silent, features=("gpu",))
    assert unnamed(nodeset(), [lost, answering, featureless, other_name]) == [lost]


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
    view = seen(*(worker(n, absent=True) for n in range(4)), amnesia=True)
    assert unregistered(view, {f"gpu-{n}": 99 for n in range(4)}, ()) == []


def test_a_slurmctld_that_misses_too_many_has_lost_its_memory() -> None:
    assert amnesia(missing=1, total=1, known=0)
    assert amnesia(missing=4, total=10, known=6)
    assert not amnesia(missing=3, total=10, known=7)
    assert not amnesia(missing=1, total=2, known=1)


def test_absence_must_be_confirmed_before_a_restart() -> None:
    assert unregistered(seen(worker(1, absent=True)), {"gpu-1": 2}, ()) == []


def test_the_only_worker_may_be_restarted() -> None:
    lost = worker(1, absent=True)
    assert unregistered(seen(lost), {"gpu-1": 3}, ()) == [lost]


def test_nobody_is_unregistered_while_slurm_does_not_answer() -> None:
    assert unregistered(seen(worker(1), known=False), {"gpu-1": 99}, ()) == []


def job(number: int, started: float, *state: str) -> Job:
    """A job that started that many seconds after the slurmd of its node."""
    return Job(job_id=number, job_state=state or ("RUNNING",), start_time=at(NOW + timedelta(seconds=started)))


def test_an_older_job_has_lost_its_processes() -> None:
    found = verdict([job(1, -60)], NOW, NOW)
    assert ([each.job_id for each in found.lost], found.alone, found.cleared) == ([1], True, False)


def test_a_younger_job_clears_the_worker() -> None:
    assert verdict([job(1, 60)], NOW, NOW).cleared


def test_neither_is_said_when_the_clocks_cannot_tell() -> None:
    for seconds in (-5, -1, 0, 3, 5):
        found = verdict([job(1, seconds)], NOW, NOW)
        assert (found.lost, found.cleared) == ((), False)


def test_a_younger_neighbour_of_a_lost_job_is_seen() -> None:
    found = verdict([job(1, -60), job(2, 60)], NOW, NOW)
    assert ([each.job_id for each in found.lost], found.alone) == ([1], False)


def test_a_worker_whose_clock_is_ahead_does_not_make_its_job_look_older() -> None:
    """slurmd started, took a job and was noticed within two seconds; its own clock was a minute ahead."""
    ahead = NOW + timedelta(seconds=60)
    found = verdict([job(1, 1)], started=ahead, noticed=NOW + timedelta(seconds=2))
    assert (found.lost, found.cleared) == ((), False)
    assert verdict([job(1, -60)], started=ahead, noticed=NOW + timedelta(seconds=2)).alone


def test_no_job_is_lost_where_slurmd_was_not_noticed_in_time() -> None:
    """Its clock was a minute ahead when it started, and it took a job at once; nobody looked for an hour."""
    ahead, hour = NOW + timedelta(seconds=60), NOW + timedelta(hours=1)
    assert verdict([job(1, 1)], started=ahead, noticed=hour).lost == ()
    assert verdict([job(1, 1)], started=ahead, noticed=None).lost == ()
    assert verdict([job(1, 120)], started=ahead, noticed=None).cleared


def test_a_job_from_before_the_pod_is_lost_whenever_slurmd_was_noticed() -> None:
    """The worker was replaced while the operator was away."""
    ahead, hour = NOW + timedelta(seconds=60), NOW + timedelta(hours=1)
    for noticed in (None, hour):
        found = verdict([job(1, -60), job(2, 1)], started=ahead, noticed=noticed, created=NOW - timedelta(seconds=2))
        assert [each.job_id for each in found.lost] == [1]


def test_a_job_that_is_being_cleaned_up_is_left_to_slurmctld() -> None:
    assert verdict([job(1, -60, "COMPLETED", "COMPLETING")], NOW, NOW).lost == ()
    assert verdict([job(1, -60, "RUNNING", "COMPLETING")], NOW, NOW).lost == ()


def test_a_restart_is_harmless_where_steps_survive_it() -> None:
    restarted = worker(1, "MIXED", status=slurmd(container="containerd://2"))
    assert suspects([restarted], steps_survive=True) == []
    assert suspects([worker(2, "MIXED", uid="another")], steps_survive=True) != []


def test_the_record_of_a_nodeset_of_the_same_name_elsewhere_is_not_ours() -> None:
    info = PodInfo("slurm", "gpu-1", "host-1", "gpu", "uid-of-another-cluster")
    assert not is_of(nodeset(), info, slurm_node(1, "MIXED"))
    assert not is_of(nodeset(), info, slurm_node(1, "IDLE"))
    assert is_of(nodeset(), info, slurm_node(1, "DOWN", "NOT_RESPONDING"))


def test_a_record_that_refuses_every_successor_is_deleted_even_with_slurms_reason() -> None:
    refused = slurm_node(1, "IDLE", "DRAIN", "INVALID_REG", reason="gres/gpu count reported lower than configured")
    assert orphans([refused], {"gpu-1"}).delete == ("gpu-1",)


def test_an_admins_drain_of_a_refused_node_outlives_the_pod_too() -> None:
    refused = slurm_node(1, "IDLE", "DRAIN", "INVALID_REG", reason="bad GPU")
    assert orphans([refused], {"gpu-1"}).delete == ()
