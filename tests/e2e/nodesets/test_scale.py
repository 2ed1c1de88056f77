"""Workers come and go with the number of replicas, and never under a running job."""

import json

import pytest

from tests.support.nodeset import NAME, Workers, is_protected, leads
from tests.support.slurm import Slurm
from tests.support.waiting import wait_for

# Needs no metrics to see that there is one worker too few.
AUTOSCALER = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "workers"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet", "name": NAME},
        "minReplicas": 3,
        "maxReplicas": 3,
    },
}


@pytest.fixture
def workers(slurm: Slurm) -> Workers:
    return Workers(slurm)


def draining(workers: Workers) -> list[str]:
    return [node for node, state in workers.slurm.nodes().items() if state == "draining"]


def test_zero_three_one_three_and_no_ghost_is_left(workers: Workers) -> None:
    for replicas in (0, 3, 1, 3):
        workers.scale(replicas)
        if replicas:
            workers.wait_until_idle(replicas)
        else:
            wait_for("no worker", lambda: not workers.pods() and not workers.slurm.nodes())
    wait_for("the status", lambda: workers.status()["slurmIdle"] == 3)
    assert workers.slurm.hosts("--nodes=3") == workers.names()


def test_scale_in_of_busy_workers_waits_for_their_jobs(workers: Workers) -> None:
    before = workers.names()
    job = workers.run_job(600, "--nodes=2")
    workers.scale(0)
    wait_for("both to drain", lambda: len(draining(workers)) == 2)
    assert workers.names() == before
    wait_for("the NodeSet to say so", lambda: "draining 2 workers for scale-in" in workers.message("Progressing"))
    workers.finish(job)
    wait_for("no worker", lambda: not workers.pods() and not workers.slurm.nodes())


def test_scale_in_takes_the_idle_worker_first(workers: Workers) -> None:
    busy = workers.one()
    job = workers.run_job(600, f"--nodelist={busy}")
    wait_for("the pod to show the job", lambda: is_protected(workers.pod(busy)))
    workers.scale(1)
    wait_for("the idle worker to be gone", lambda: workers.names() == [busy])
    workers.finish(job)


def test_scaling_back_out_lets_a_draining_worker_live(workers: Workers) -> None:
    uids = workers.uids()
    job = workers.run_job(600, "--nodes=2")
    workers.scale(1)
    wait_for("one to drain", lambda: draining(workers))
    workers.scale(2)
    wait_for("none to drain", lambda: (states := workers.slurm.nodes()) and "draining" not in states.values())
    workers.finish(job)
    workers.wait_until_idle(2)
    assert workers.uids() == uids


def test_nothing_is_removed_while_slurm_cannot_be_asked(workers: Workers) -> None:
    uids = workers.uids()
    job = workers.run_job(600, "--nodes=2")
    wait_for("the pods to show the job", lambda: all(is_protected(pod) for pod in workers.pods().values()))
    with workers.without_slurmrestd():
        workers.scale(0)
        wait_for("the NodeSet to say so", lambda: "Slurm cannot be asked" in workers.message("Degraded"))
        assert workers.uids() == uids
        assert all(is_protected(pod) for pod in workers.pods().values())
        workers.kill_operator()
        wait_for("another operator to lead", lambda: leads(workers.slurm))
        workers.finish(job)
        assert workers.uids() == uids
    wait_for("no worker", lambda: not workers.pods() and not workers.slurm.nodes())


def test_an_operator_killed_in_the_middle_of_a_scale_in_goes_on_where_it_was(workers: Workers) -> None:
    job = workers.run_job(600, "--nodes=2")
    workers.scale(1)
    (chosen,) = wait_for("one to drain", lambda: draining(workers))
    workers.kill_operator()
    wait_for("another operator to lead", lambda: leads(workers.slurm))
    workers.finish(job)
    wait_for("the drained one to be gone", lambda: len(workers.names()) == 1)
    assert chosen not in workers.names()


def test_an_autoscaler_can_read_and_write_the_scale(workers: Workers) -> None:
    wait_for("the count", lambda: workers.status().get("replicas") == 2)
    path = f"/apis/slinky.slurm.net/v1beta1/namespaces/slurm/nodesets/{workers.name}/scale"
    scale = json.loads(workers.slurm.kubectl("get", "--raw", path))
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (2, 2)
    assert "app.kubernetes.io/name=slurmd" in scale["status"]["selector"]
    kind, name = "horizontalpodautoscaler", "workers"
    workers.slurm.kubectl("apply", "--filename=-", stdin=json.dumps(AUTOSCALER))
    try:
        workers.slurm.wait_until_idle(3)
        assert workers.slurm.conditions(kind, name)["AbleToScale"]["status"] == "True"
    finally:
        workers.slurm.kubectl("delete", kind, name)
