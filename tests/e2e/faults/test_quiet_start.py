"""A start that takes its normal time leaves no Warning events behind."""

import json
from collections.abc import Iterator

import pytest

from tests.support.nodeset import Workers
from tests.support.slurm import RESTAPI, Slurm
from tests.support.waiting import wait_for

SLURMRESTD = "app.kubernetes.io/name=slurmrestd"


@pytest.fixture
def new(slurm: Slurm) -> Iterator[set[str]]:
    """The pods of a new NodeSet, and a new slurmrestd beside the old one."""
    before = {pod["metadata"]["name"] for pod in slurm.items("pods")}
    workers = Workers.create(slurm, "quiet", "quiet-")
    slurm.patch(RESTAPI, slurm.name, {"spec": {"replicas": 2}})
    try:
        wait_for("the new worker", lambda: slurm.nodes().get("quiet-0") == "idle")
        wait_for("two slurmrestd", lambda: slurm.get(RESTAPI, slurm.name)["status"].get("readyReplicas") == 2)
        yield {pod["metadata"]["name"] for pod in slurm.items("pods")} - before
    finally:
        slurm.patch(RESTAPI, slurm.name, {"spec": {"replicas": 1}})
        workers.delete()
        wait_for("one slurmrestd", lambda: len(slurm.items("pods", selector=SLURMRESTD)) == 1)


def test_probes_of_a_new_worker_and_a_new_slurmrestd_do_not_fail(slurm: Slurm, new: set[str]) -> None:
    assert len(new) >= 2
    found = json.loads(slurm.kubectl("get", "events", "--field-selector=reason=Unhealthy", "--output=json"))["items"]
    assert [each["message"] for each in found if each["involvedObject"]["name"] in new] == []
