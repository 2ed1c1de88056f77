"""`kubectl drain` of a busy node waits for the job: the disruption budget protects what works."""

import json

from tests.support.nodeset import Workers, is_protected
from tests.support.slurm import Slurm, wait_for


def evict(slurm: Slurm, pod: str) -> str:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": slurm.namespace}}
    path = f"/api/v1/namespaces/{slurm.namespace}/pods/{pod}/eviction"
    return slurm.kubectl("create", "--raw", path, "--filename=-", stdin=json.dumps(body), check=False)


def test_an_eviction_of_a_busy_worker_is_refused_and_of_an_idle_one_granted(slurm: Slurm) -> None:
    workers = Workers(slurm)
    job = workers.run_job(15, "--nodelist=worker-1")
    pod = workers.pods()["worker-1"]["metadata"]["name"]
    uid = workers.uids()["worker-1"]
    wait_for("the protection", lambda: is_protected(workers.pods()["worker-1"]))
    wait_for("the budget to count it", lambda: _counted(slurm))
    evict(slurm, pod)
    assert workers.uids()["worker-1"] == uid
    workers.unharmed(job)
    wait_for("the protection to end", lambda: not is_protected(workers.pods()["worker-1"]))
    evict(slurm, pod)
    wait_for("another pod", lambda: workers.uids().get("worker-1", uid) != uid)
    workers.wait_until_idle(2)


def _counted(slurm: Slurm) -> bool:
    return int(slurm.get("poddisruptionbudget", "slurm-workers-pdb-slurm")["status"]["expectedPods"]) > 0
