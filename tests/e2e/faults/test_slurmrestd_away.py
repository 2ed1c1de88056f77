"""Without slurmrestd nothing is lost: jobs run, the objects say what is missing, and all goes on when it is back."""

import json

from tests.support.slurm import CONTROLLER, RESTAPI, Slurm
from tests.support.waiting import wait_for

SLURMRESTD = "app.kubernetes.io/name=slurmrestd"


def ready(slurm: Slurm) -> int:
    return int(slurm.get(RESTAPI, "slurm").get("status", {}).get("readyReplicas", 0))


def test_jobs_run_without_slurmrestd_and_a_change_waits_for_it(slurm: Slurm) -> None:
    extra = slurm.get(CONTROLLER, "slurm")["spec"]["extraConf"]
    try:
        slurm.patch(RESTAPI, "slurm", {"spec": {"replicas": 0}})
        wait_for("no slurmrestd", lambda: not slurm.items("pods", selector=SLURMRESTD))
        assert slurm.hosts("--nodes=2") == sorted(slurm.nodes())
        slurm.patch(CONTROLLER, "slurm", {"spec": {"extraConf": f"{extra}\nMaxJobCount=4444"}})
        wait_for(
            "the Controller to say what it waits for",
            lambda: slurm.conditions(CONTROLLER)["Progressing"]["reason"] == "SlurmNotReachable",
        )
        slurm.patch(RESTAPI, "slurm", {"spec": {"replicas": 1}})
        wait_for("the change to be live", lambda: slurm.config("MaxJobCount") == "4444")
    finally:
        slurm.patch(RESTAPI, "slurm", {"spec": {"replicas": 1}})
        slurm.patch(CONTROLLER, "slurm", {"spec": {"extraConf": extra}})
        wait_for("the first configuration to be live again", slurm.config_is_live)


def test_a_lost_replica_is_not_noticed(slurm: Slurm) -> None:
    extra = slurm.get(CONTROLLER, "slurm")["spec"]["extraConf"]
    try:
        slurm.patch(RESTAPI, "slurm", {"spec": {"replicas": 2}})
        wait_for("two slurmrestd", lambda: ready(slurm) == 2)
        pods = slurm.items("pods", selector=SLURMRESTD)
        slurm.kubectl("delete", "pod", pods[0]["metadata"]["name"], "--wait=false", "--grace-period=1")
        slurm.patch(CONTROLLER, "slurm", {"spec": {"extraConf": f"{extra}\nMaxJobCount=4445"}})
        wait_for("a change to be live", lambda: slurm.config("MaxJobCount") == "4445")
    finally:
        slurm.patch(CONTROLLER, "slurm", {"spec": {"extraConf": extra}})
        wait_for("the first configuration to be live again", slurm.config_is_live)
        slurm.patch(RESTAPI, "slurm", {"spec": {"replicas": 1}})
        wait_for("one slurmrestd", lambda: len(slurm.items("pods", selector=SLURMRESTD)) == 1)


def test_a_restapi_deleted_by_mistake_says_how_to_have_it_back(slurm: Slurm) -> None:
    found = slurm.get(RESTAPI, "slurm")
    metadata = {name: found["metadata"].get(name, {}) for name in ("name", "labels", "annotations")}
    slurm.kubectl("delete", RESTAPI, "slurm", "--wait=false")
    try:
        wait_for("the reason", lambda: slurm.conditions(RESTAPI)["Ready"]["reason"] == "DeletionBlocked")
        shown = slurm.kubectl("get", "slurm", "--output=wide")
        assert "DeletionBlocked" in shown
        assert "kubeslurm.dev/force-delete=true" in shown
    finally:
        slurm.kubectl("annotate", RESTAPI, "slurm", "kubeslurm.dev/force-delete=true")
        wait_for("the RestApi to be gone", lambda: slurm.find(RESTAPI, "slurm") is None)
        again = {"apiVersion": found["apiVersion"], "kind": found["kind"], "metadata": metadata, "spec": found["spec"]}
        slurm.kubectl("create", "--filename=-", stdin=json.dumps(again))
        wait_for("slurmrestd", lambda: ready(slurm) == 1)
