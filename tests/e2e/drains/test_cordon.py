"""Kubernetes and Slurm tell each other which nodes take no jobs, and neither undoes what the other decided."""

from collections.abc import Iterator

import pytest

from tests.support.nodeset import Workers, node_of, states_of
from tests.support.slurm import Slurm
from tests.support.waiting import wait_for

POD_CORDON = "nodeset.slinky.slurm.net/pod-cordon"
WORKERS = "--selector=app.kubernetes.io/name=slurmd"


@pytest.fixture
def workers(slurm: Slurm) -> Iterator[Workers]:
    found = Workers(slurm)
    yield found
    found.scale(2)
    slurm.kubectl("annotate", "pods", WORKERS, f"{POD_CORDON}-", check=False)
    for host in kubectl(found, "get", "nodes", "--output=name").split():
        kubectl(found, "uncordon", host)
        kubectl(found, "taint", host, "repair-", check=False)
        kubectl(found, "annotate", host, "nodeset.slinky.slurm.net/node-cordon-reason-", check=False)
    found.wait_until_idle(2)


def kubectl(workers: Workers, *args: str, check: bool = True) -> str:
    return workers.slurm.cluster.kubectl(*args, check=check)


def test_cordon_drains_and_uncordon_resumes(workers: Workers) -> None:
    host = node_of(workers.pod("worker-0"))
    job = workers.run_job(600, "--nodelist=worker-0")
    kubectl(workers, "cordon", host)
    wait_for("the drain", lambda: workers.slurm.nodes().get("worker-0") == "draining")
    assert f"Node ({host}) was cordoned" in workers.reasons().get("worker-0", "")
    assert workers.slurm.nodes().get("worker-1") == "idle"
    workers.finish(job)
    kubectl(workers, "uncordon", host)
    workers.wait_until_idle(2)


def test_a_cordon_made_while_slurm_cannot_be_told_reaches_it_later(workers: Workers) -> None:
    host = node_of(workers.pod("worker-0"))
    job = workers.run_job(600, "--nodelist=worker-0")
    with workers.without_slurmrestd():
        kubectl(workers, "cordon", host)
        wait_for("the cordon to be seen", lambda: _is_cordoned(workers.pod("worker-0")))
        assert not workers.slurm.nodes()["worker-0"].startswith("drain")
    wait_for("the drain", lambda: workers.slurm.nodes().get("worker-0", "").startswith("drain"))
    workers.finish(job)
    kubectl(workers, "uncordon", host)
    workers.wait_until_idle(2)


def test_the_reason_on_the_node_reaches_slurm(workers: Workers) -> None:
    host = node_of(workers.pod("worker-0"))
    kubectl(workers, "annotate", "node", host, "nodeset.slinky.slurm.net/node-cordon-reason=new fan on Monday")
    kubectl(workers, "cordon", host)
    wait_for("the reason", lambda: workers.reasons().get("worker-0") == "slurm-operator: new fan on Monday")


def test_a_taint_that_workers_do_not_tolerate_drains(workers: Workers) -> None:
    host = node_of(workers.pod("worker-1"))
    kubectl(workers, "taint", "node", host, "repair=now:NoSchedule")
    wait_for("the drain", lambda: workers.slurm.nodes().get("worker-1") == "drained")
    kubectl(workers, "taint", "node", host, "repair-")
    workers.wait_until_idle(2)


def test_an_admins_drain_is_shown_on_the_pod_and_survives_everything(workers: Workers) -> None:
    host = node_of(workers.pod("worker-0"))
    try:
        workers.slurm.run("scontrol", "update", "nodename=worker-0", "state=drain", "reason=bad fan")
        wait_for("the pod condition", lambda: "Drain" in states_of(workers.pod("worker-0")))
        condition = next(
            each for each in workers.pod("worker-0")["status"]["conditions"] if each["type"] == "SlurmNodeStateDrain"
        )
        assert condition["message"] == "bad fan"
        kubectl(workers, "cordon", host)
        workers.kill_operator()
        wait_for("the cordon to be seen", lambda: _is_cordoned(workers.pod("worker-0")))
        kubectl(workers, "uncordon", host)
        wait_for("the uncordon to be seen", lambda: not _is_cordoned(workers.pod("worker-0")))
        assert (workers.slurm.nodes().get("worker-0"), workers.reasons().get("worker-0")) == ("drained", "bad fan")
    finally:
        workers.slurm.run("scontrol", "update", "nodename=worker-0", "state=resume")


def test_a_users_cordon_of_one_pod_holds(workers: Workers) -> None:
    pod = workers.pod("worker-0")["metadata"]["name"]
    workers.slurm.kubectl("annotate", "pod", pod, f"{POD_CORDON}=true")
    wait_for("the drain", lambda: workers.slurm.nodes().get("worker-0") == "drained")
    workers.scale(3)
    wait_for("a third worker", lambda: workers.slurm.nodes().get("worker-2") == "idle")
    assert workers.slurm.nodes().get("worker-0") == "drained"
    workers.slurm.kubectl("annotate", "pod", pod, f"{POD_CORDON}-")
    workers.slurm.wait_until_idle(3)


def _is_cordoned(pod: dict[str, dict[str, dict[str, str]]]) -> bool:
    return pod["metadata"]["annotations"].get(POD_CORDON) == "true"
