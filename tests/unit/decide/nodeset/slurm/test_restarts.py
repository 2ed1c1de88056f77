"""A slurmd that was restarted under running jobs, and which of them it cost."""

from datetime import timedelta

from kubeslurm.decide.nodeset.slurm.restarts import Response, lost_jobs, noticed_at, response, restarted
from kubeslurm.decide.nodeset.worker import PodInfo
from kubeslurm.slurm.rest.models import Job
from tests.support.workers import NOW, ago, at, slurmd, worker


def test_a_busy_worker_with_another_container_than_slurm_knows_was_restarted() -> None:
    changed = worker(1, "MIXED", status=slurmd(container="containerd://2"))
    replaced = worker(2, "MIXED", uid="another")
    assert restarted([changed, replaced, worker(3, "MIXED")]) == [changed, replaced]


def test_an_idle_or_fenced_or_unknown_worker_does_not_count_as_restarted() -> None:
    other = slurmd(container="containerd://2")
    foreign = worker(3, "MIXED", status=other, slurm={"comment": "racked by hand"})
    old_style = worker(4, "MIXED", status=other, slurm={"comment": PodInfo("slurm", "gpu-4").text})
    assert restarted([worker(1, status=other), worker(2, "DOWN", "MIXED", status=other), foreign, old_style]) == []


def job(number: int, started: float, *state: str) -> Job:
    """A job that started that many seconds after the slurmd of its node."""
    return Job(job_id=number, job_state=state or ("RUNNING",), start_time=at(NOW + timedelta(seconds=started)))


def test_an_older_job_has_lost_its_processes() -> None:
    found = lost_jobs([job(1, -60)], NOW, NOW)
    assert ([each.job_id for each in found.lost], found.all_lost, found.none_lost) == ([1], True, False)


def test_a_younger_job_clears_the_worker() -> None:
    assert lost_jobs([job(1, 60)], NOW, NOW).none_lost


def test_neither_is_said_when_the_clocks_cannot_tell() -> None:
    for seconds in (-5, -1, 0, 3, 5):
        found = lost_jobs([job(1, seconds)], NOW, NOW)
        assert (found.lost, found.none_lost) == ((), False)


def test_a_younger_neighbour_of_a_lost_job_is_seen() -> None:
    found = lost_jobs([job(1, -60), job(2, 60)], NOW, NOW)
    assert ([each.job_id for each in found.lost], found.all_lost) == ([1], False)


def test_a_worker_whose_clock_is_ahead_does_not_make_its_job_look_older() -> None:
    """slurmd started, took a job and was noticed within two seconds; its own clock was a minute ahead."""
    ahead = NOW + timedelta(seconds=60)
    found = lost_jobs([job(1, 1)], started=ahead, noticed=NOW + timedelta(seconds=2))
    assert (found.lost, found.none_lost) == ((), False)
    assert lost_jobs([job(1, -60)], started=ahead, noticed=NOW + timedelta(seconds=2)).all_lost


def test_no_job_is_lost_where_slurmd_was_not_noticed_in_time() -> None:
    """Its clock was a minute ahead when it started, and it took a job at once; nobody looked for an hour."""
    ahead, hour = NOW + timedelta(seconds=60), NOW + timedelta(hours=1)
    assert lost_jobs([job(1, 1)], started=ahead, noticed=hour).lost == ()
    assert lost_jobs([job(1, 1)], started=ahead, noticed=None).lost == ()
    assert lost_jobs([job(1, 120)], started=ahead, noticed=None).none_lost


def test_a_job_from_before_the_pod_is_lost_whenever_slurmd_was_noticed() -> None:
    """The worker was replaced while the operator was away."""
    ahead, hour = NOW + timedelta(seconds=60), NOW + timedelta(hours=1)
    for noticed in (None, hour):
        found = lost_jobs([job(1, -60), job(2, 1)], started=ahead, noticed=noticed, created=NOW - timedelta(seconds=2))
        assert [each.job_id for each in found.lost] == [1]


def test_a_job_that_is_being_cleaned_up_is_left_to_slurmctld() -> None:
    assert lost_jobs([job(1, -60, "COMPLETED", "COMPLETING")], NOW, NOW).lost == ()
    assert lost_jobs([job(1, -60, "RUNNING", "COMPLETING")], NOW, NOW).lost == ()


def test_a_restart_is_harmless_where_steps_survive_it() -> None:
    changed = worker(1, "MIXED", status=slurmd(container="containerd://2"))
    assert restarted([changed], steps_survive=True) == []
    assert restarted([worker(2, "MIXED", uid="another")], steps_survive=True) != []


def test_a_node_whose_jobs_are_all_lost_is_fenced() -> None:
    each = worker(1, "MIXED", status=slurmd(container="containerd://2", since=0))
    text = "slurm-operator: Pod (slurm/gpu-1) was restarted under a running job"
    assert response(each, [job(1, -60)], NOW) == Response(fence_reason=text)


def test_only_the_lost_jobs_of_a_node_are_ended() -> None:
    each = worker(1, "MIXED", status=slurmd(container="containerd://2", since=0))
    assert response(each, [job(1, -60), job(2, 60)], NOW) == Response(end=(job(1, -60),))


def test_the_comment_is_renewed_when_no_job_was_lost() -> None:
    each = worker(1, "MIXED", status=slurmd(container="containerd://2", since=0))
    assert response(each, [job(2, 60)], NOW) == Response(renew_comment=True)
    assert response(each, [], NOW) == Response()


def test_a_slurmd_is_noticed_by_the_clock_of_slurmctld() -> None:
    now = int(NOW.timestamp())
    assert noticed_at(worker(1), now, 90.5) == ago(90)
    assert noticed_at(worker(1), now, None) is None
