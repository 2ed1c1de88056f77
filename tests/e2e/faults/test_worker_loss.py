"""Workers are lost in every way: their jobs are requeued once, all others never notice, and the worker comes back."""

import pytest

from tests.support.nodeset import Workers, node_of
from tests.support.places import is_unreachable, kubelet_stopped, powered_off
from tests.support.slurm import Slurm
from tests.support.waiting import wait_for


@pytest.fixture
def workers(slurm: Slurm) -> Workers:
    return Workers(slurm)


def pod_of(workers: Workers, node: str) -> str:
    return str(workers.pod(node)["metadata"]["name"])


def lose(workers: Workers, node: str) -> None:
    """Takes a worker away without a word."""
    workers.slurm.kubectl("delete", "pod", pod_of(workers, node), "--grace-period=0", "--force", "--wait=false")


def requeued_once(workers: Workers, job: int) -> None:
    wait_for("the job to be requeued", lambda: workers.fate(job).restarts == 1)
    workers.release(job)
    fate = workers.let_end(job)
    assert (fate.state, fate.restarts) == ("COMPLETED", 1)


def test_a_pod_deleted_by_a_user(workers: Workers) -> None:
    job = workers.run_job(600, "--nodes=2")
    workers.slurm.kubectl("delete", "pod", pod_of(workers, workers.one()), "--wait=false")
    requeued_once(workers, job)
    workers.wait_until_idle(2)


def test_a_pod_that_vanishes_without_a_word(workers: Workers) -> None:
    job = workers.run_job(600, "--nodes=2")
    lose(workers, workers.one())
    requeued_once(workers, job)
    workers.wait_until_idle(2)


def test_a_container_that_is_killed_under_a_job_on_two_nodes(workers: Workers) -> None:
    """The job must be older than the restart by more than clocks may differ, or nobody could tell whose it is."""
    job = workers.run_job(600, "--nodes=2")
    wait_for("the job to have run for a while", lambda: workers.age(job) >= 8)
    kill_slurmd(workers, workers.one())
    requeued_once(workers, job)
    workers.wait_until_idle(2)


def test_jobs_on_other_workers_never_notice(workers: Workers) -> None:
    stays, goes = workers.both()
    other = workers.run_job(600, f"--nodelist={stays}")
    lost = workers.run_job(600, f"--nodelist={goes}")
    lose(workers, goes)
    wait_for("the lost job to be requeued", lambda: workers.fate(lost).restarts == 1)
    workers.release(lost)
    workers.let_end(lost)
    workers.finish(other)
    workers.wait_until_idle(2)


def test_a_node_that_dies_and_returns(workers: Workers) -> None:
    host = node_of(workers.pod(workers.away_from_slurmctld()))
    job = workers.run_job(600, "--nodes=2")
    with powered_off(workers.slurm, host):
        pass
    requeued_once(workers, job)
    workers.wait_until_idle(2)


def test_a_kubelet_that_is_away_costs_no_job(workers: Workers) -> None:
    """Kubernetes gives the node up; slurmd lives on, and nothing may evict it."""
    name = workers.away_from_slurmctld()
    host, uid = node_of(workers.pod(name)), workers.uid(name)
    job = workers.run_job(600, "--nodes=2")
    with kubelet_stopped(workers.slurm, host):
        wait_for("the node to be given up", lambda: is_unreachable(workers.slurm, host))
        workers.finish(job)
        assert workers.uid(name) == uid
    wait_for("the node to be back", lambda: not is_unreachable(workers.slurm, host))
    workers.wait_until_idle(2)
    assert workers.uid(name) == uid


def kill_slurmd(workers: Workers, node: str) -> None:
    """The whole container, as the kernel would end it when memory runs out."""
    pod = workers.pod(node)
    status = next(each for each in pod["status"]["containerStatuses"] if each["name"] == "slurmd")
    container = status["containerID"].partition("://")[2]
    argv = ["ctr", "--namespace=k8s.io", "task", "kill", "--signal=SIGKILL", container]
    assert workers.slurm.cluster.exec_in_node(node_of(pod), argv).returncode == 0
