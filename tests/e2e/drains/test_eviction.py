"""`kubectl drain` of a busy node waits for the job: the disruption budget protects what works."""

from collections.abc import Iterator

import pytest

from tests.support.nodeset import Workers, counted, evict, is_protected
from tests.support.settled import is_as_desired
from tests.support.slurm import Slurm
from tests.support.waiting import wait_for


def test_an_eviction_of_a_busy_worker_is_refused_and_of_an_idle_one_granted(slurm: Slurm) -> None:
    workers = Workers(slurm)
    busy = workers.one()
    job = workers.run_job(600, f"--nodelist={busy}")
    pod, uid = workers.pod(busy)["metadata"]["name"], workers.uid(busy)
    wait_for("the protection", lambda: is_protected(workers.pod(busy)))
    wait_for("the budget to count it", lambda: counted(slurm) > 0)
    assert "disruption budget" in evict(slurm, pod)
    assert workers.uid(busy) == uid
    workers.finish(job)
    wait_for("the protection to end", lambda: not is_protected(workers.pod(busy)))
    # The disruption controller counts a moment later.
    wait_for("the eviction to be granted", lambda: evict(slurm, pod) == "")
    wait_for("another pod", lambda: workers.uids().get(busy, uid) != uid)
    workers.wait_until_idle(2)


@pytest.fixture
def crowds(slurm: Slurm) -> Iterator[tuple[Workers, Workers]]:
    """A worker on every Kubernetes node in DaemonSet mode, and eight in StatefulSet mode beside them."""
    first = Workers(slurm)
    first.scale(0)
    wait_for("the nodes to be free", lambda: not first.pods())
    daemons = Workers.create(slurm, "daemons", "daemon-", scalingMode="DaemonSet", oversubscribeNode=True)
    eight = Workers.create(slurm, "eight", "eight-", replicas=8, oversubscribeNode=True)
    try:
        slurm.wait_until_idle(8 + len(slurm.cluster.spec.nodes), within=300)
        wait_for("slurmctld to run with the new NodeSets", lambda: is_as_desired(slurm))
        yield daemons, eight
    finally:
        for each in slurm.cluster.spec.nodes:
            slurm.cluster.kubectl("uncordon", each.name)
        daemons.delete()
        eight.delete()
        first.scale(2)


def on_all(workers: Workers) -> tuple[str, str]:
    names = workers.names()
    return f"--nodelist={','.join(names)}", f"--nodes={len(names)}"


def test_draining_all_nodes_at_once_hurts_no_job_in_any_mode(slurm: Slurm, crowds: tuple[Workers, Workers]) -> None:
    jobs = {each: each.run_job(900, *on_all(each)) for each in crowds}
    uids = [each.uids() for each in crowds]
    # In the middle of a scale-in: six of the eight workers must go when the job has ended.
    crowds[1].scale(2)
    wait_for("the drain", lambda: list(slurm.nodes().values()).count("draining") == 6)
    pods = [pod["metadata"]["name"] for each in crowds for pod in each.pods().values()]
    wait_for("the budget to count all of them", lambda: counted(slurm) == len(pods))
    drain = ("drain", "--pod-selector=app.kubernetes.io/name=slurmd", "--delete-emptydir-data", "--timeout=5s")
    slurm.cluster.kubectl(*drain, *(each.name for each in slurm.cluster.spec.nodes), check=False)
    refusals = [evict(slurm, pod) for pod in pods]
    assert all("disruption budget" in each for each in refusals), refusals
    assert [each.uids() for each in crowds] == uids
    for workers, job in jobs.items():
        workers.finish(job)
    wait_for("two of the eight", lambda: len(crowds[1].pods()) == 2)
