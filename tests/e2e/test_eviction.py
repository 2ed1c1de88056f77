"""`kubectl drain` of a busy node waits for the job: the disruption budget protects what works."""

import json

from tests.support.nodeset import Workers
from tests.support.slurm import Slurm, wait_for

PROTECT = "nodeset.slinky.slurm.net/pod-protect"


def evict(slurm: Slurm, pod: str) -> str:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": slurm.namespace}}
    path = f"/api/v1/namespaces/{slurm.namespace}/pods/{pod}/eviction"
    return slurm.kubectl("create", "--raw", path, "--filename=-", stdin=json.dumps(body), check=False)


def test_an_eviction_of_a_busy_worker_is_refused_and_of_an_idle_one_granted(slurm: Slurm) -> None:
    workers = Workers(slurm)
    job = workers.run_job(6, "--nodelist=worker-1")
    pod = workers.pods()["worker-1"]["metadata"]["name"]
    uid = workers.uids()["worker-1"]
    wait_for("the protection", lambda: workers.pods()["worker-1"]["metadata"]["labels"].get(PROTECT) == "true")
    wait_for("the budget to count it", lambda: _protected(slurm) == 1)
    evict(slurm, pod)
    assert workers.uids()["worker-1"] == uid
    workers.unharmed(job)
    wait_for("the protection to end", lambda: PROTECT not in workers.pods()["worker-1"]["metadata"]["labels"])
    wait_for("the budget to forget it", lambda: _protected(slurm) == 0)
    evict(slurm, pod)
    wait_for("another pod", lambda: workers.uids().get("worker-1", uid) != uid)
    workers.wait_until_idle(2)


def _protected(slurm: Slurm) -> int:
    return int(slurm.get("poddisruptionbudget", "slurm-workers-pdb-slurm")["status"]["expectedPods"])
