"""A running cluster of Slinky's operator gets ours: nothing is restarted, and it goes on from there."""

from collections.abc import Iterator

import pytest

from kubeslurm.cli.up.installation import Installation
from tests.support.kubernetes import Kubernetes
from tests.support.nodeset import Workers, operators
from tests.support.predecessor.chart import WORKERS
from tests.support.predecessor.cluster import Predecessor
from tests.support.predecessor.parts import NAME, NODESET
from tests.support.predecessor.workers import REVISION
from tests.support.settled import is_as_desired
from tests.support.slurm import CONTROLLER, Slurm
from tests.support.waiting import wait_for

NAMESPACE = "taken-over"
DEPLOYMENT = "deployment/slurm-operator"


def run_operators(cluster: Kubernetes, count: int) -> None:
    cluster.kubectl("--namespace=slinky", "scale", DEPLOYMENT, f"--replicas={count}")
    wait_for(f"{count} operators", lambda: len(operators(cluster)) == count)


@pytest.fixture
def old(cluster: Kubernetes, product: Installation, slurm: Slurm) -> Iterator[Predecessor]:
    """The other operator's cluster with idle workers, and no operator at work."""
    made = Predecessor(cluster, NAMESPACE, product.tags)
    try:
        run_operators(cluster, 0)
        made.install()
        made.wait_until_idle(WORKERS)
        yield made
    finally:
        run_operators(cluster, 1)
        cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=true", "--timeout=180s", check=False)


def test_nothing_restarts_and_jobs_configuration_and_workers_go_on(old: Predecessor, cluster: Kubernetes) -> None:
    workers = Workers(old, NODESET)
    job = workers.run_job(600)
    before, made = old.stays(), old.workloads()

    run_operators(cluster, 1)
    wait_for("everything to be as desired", lambda: is_as_desired(old))
    assert old.stays() == before
    assert old.workloads() == made
    assert old.revisions() == {f"{NODESET}-{REVISION}"}

    extra = old.get(CONTROLLER, NAME)["spec"]["extraConf"]
    old.patch(CONTROLLER, NAME, {"spec": {"extraConf": f"{extra}\nMaxJobCount=4321"}})
    wait_for("the change to be live", lambda: old.config("MaxJobCount") == "4321")
    wait_for("the status to say so", old.config_is_live)
    assert old.stays() == before

    # One worker less: the idle one goes, the busy one stays as it is.
    busy = workers.fate(job).nodes
    uid = workers.uids()[busy]
    workers.scale(1)
    wait_for("one worker", lambda: workers.uids() == {busy: uid})
    fate = workers.fate(job)
    assert (fate.state, fate.restarts) == ("RUNNING", 0)
    old.run("scancel", str(job))
