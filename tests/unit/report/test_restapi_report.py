"""What a RestApi says whose deletion is held."""

from datetime import UTC, datetime

import msgspec

from kubeslurm.api import names
from kubeslurm.api.slinky.restapi import RestApi
from kubeslurm.api.views import Deployment
from kubeslurm.report.restapi import Facts, status


def test_a_deletion_that_waits_is_shown_with_both_ways_out() -> None:
    metadata = {"name": "r", "namespace": "ns", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    restapi = msgspec.convert({"metadata": metadata, "spec": {"controllerRef": {"name": "c"}}}, RestApi)
    running = msgspec.convert({"metadata": {"name": "r"}, "status": {"readyReplicas": 1}}, Deployment)
    facts = Facts(now=datetime(2026, 1, 1, tzinfo=UTC), deployment=running, nodesets=("cpu", "gpu"))
    found = {each["type"]: each for each in status(restapi, facts, None)["conditions"]}
    # `kubectl get` shows the reason and the message of Ready.
    assert (found["Ready"]["status"], found["Ready"]["reason"]) == ("False", "DeletionBlocked")
    assert "NodeSets cpu, gpu" in found["Ready"]["message"]
    assert f"{names.FORCE_DELETE}=true" in found["Ready"]["message"]
    assert "create it again" in found["Ready"]["message"]
