"""`kubectl drain` of a busy node waits for the job: the disruption budget protects what works."""

from tests.support.nodeset import Workers, evict, is_counted, is_protected
from tests.support.slurm import Slurm
from tests.support.waiting import wait_for


def test_an_eviction_of_a_busy_worker_is_refused_and_of_an_idle_one_granted(slurm: Slurm) -> None:
    workers = Workers(slurm)
    busy = workers.one()
    job = workers.run_job(600, f"--nodelist={busy}")
    pod, uid = workers.pod(busy)["metadata"]["name"], workers.uid(busy)
    wait_for("the protection", lambda: is_protected(workers.pod(busy)))
    wait_for("the budget to count it", lambda: is_counted(slurm))
    assert "disruption budget" in evict(slurm, pod)
    assert workers.uid(busy) == uid
    workers.finish(job)
    wait_for("the protection to end", lambda: not is_protected(workers.pod(busy)))
    # The disruption controller counts a moment later.
    wait_for("the eviction to be granted", lambda: evict(slurm, pod) == "")
    wait_for("another pod", lambda: workers.uids().get(busy, uid) != uid)
    workers.wait_until_idle(2)
