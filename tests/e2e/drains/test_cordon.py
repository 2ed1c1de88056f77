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
    slurm.kubectl("annotate", "pods", WORKERS, f"{POD_CORDON}-", check=False)
    kubectl(found, "annotate", "nodes", "--all", "nodeset.slinky.slurm.net/node-cordon-reason-", check=False)


@pytest.fixture
def name(workers: Workers) -> str:
    return workers.one()


def kubectl(workers: Workers, *args: str, check: bool = True) -> str:
    return workers.slurm.cluster.kubectl(*args, check=check)


def test_cordon_drains_and_uncordon_resumes(workers: Workers, name: str) -> None:
    host = node_of(workers.pod(name))
    job = workers.run_job(600, f"--nodelist={name}")
    kubectl(workers, "cordon", host)
    wait_for("the drain", lambda: workers.slurm.nodes().get(name) == "draining")
    assert f"Node ({host}) was cordoned" in workers.reasons().get(name, "")
    assert [state for node, state in workers.slurm.nodes().items() if node != name] == ["idle"]
    workers.finish(job)
    kubectl(workers, "uncordon", host)
    workers.wait_until_idle(2)


def test_a_cordon_made_while_slurm_cannot_be_told_reaches_it_later(workers: Workers, name: str) -> None:
    host = node_of(workers.pod(name))
    job = workers.run_job(600, f"--nodelist={name}")
    with workers.without_slurmrestd():
        kubectl(workers, "cordon", host)
        wait_for("the cordon to be seen", lambda: _is_cordoned(workers.pod(name)))
        assert not workers.slurm.nodes()[name].startswith("drain")
    wait_for("the drain", lambda: workers.slurm.nodes().get(name, "").startswith("drain"))
    workers.finish(job)
    kubectl(workers, "uncordon", host)
    workers.wait_until_idle(2)


def test_the_reason_on_the_node_reaches_slurm(workers: Workers, name: str) -> None:
    host = node_of(workers.pod(name))
    kubectl(workers, "annotate", "node", host, "nodeset.slinky.slurm.net/node-cordon-reason=new fan on Monday")
    kubectl(workers, "cordon", host)
    wait_for("the reason", lambda: workers.reasons().get(name) == "slurm-operator: new fan on Monday")


def test_an_admins_drain_is_shown_on_the_pod_and_survives_everything(workers: Workers, name: str) -> None:
    host = node_of(workers.pod(name))
    try:
        workers.slurm.run("scontrol", "update", f"nodename={name}", "state=drain", "reason=bad fan")
        wait_for("the pod condition", lambda: "Drain" in states_of(workers.pod(name)))
        condition = next(
            each for each in workers.pod(name)["status"]["conditions"] if each["type"] == "SlurmNodeStateDrain"
        )
        assert condition["message"] == "bad fan"
        kubectl(workers, "cordon", host)
        workers.kill_operator()
        wait_for("the cordon to be seen", lambda: _is_cordoned(workers.pod(name)))
        kubectl(workers, "uncordon", host)
        wait_for("the uncordon to be seen", lambda: not _is_cordoned(workers.pod(name)))
        assert (workers.slurm.nodes().get(name), workers.reasons().get(name)) == ("drained", "bad fan")
    finally:
        workers.slurm.run("scontrol", "update", f"nodename={name}", "state=resume")


def test_a_users_cordon_of_one_pod_holds(workers: Workers, name: str) -> None:
    pod = workers.pod(name)["metadata"]["name"]
    workers.slurm.kubectl("annotate", "pod", pod, f"{POD_CORDON}=true")
    wait_for("the drain", lambda: workers.slurm.nodes().get(name) == "drained")
    workers.scale(3)
    wait_for("a third worker", lambda: list(workers.slurm.nodes().values()).count("idle") == 2)
    assert workers.slurm.nodes().get(name) == "drained"
    workers.slurm.kubectl("annotate", "pod", pod, f"{POD_CORDON}-")
    workers.slurm.wait_until_idle(3)


def _is_cordoned(pod: dict[str, dict[str, dict[str, str]]]) -> bool:
    return pod["metadata"]["annotations"].get(POD_CORDON) == "true"
