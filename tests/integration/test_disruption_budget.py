"""The disruption budget of workers, as the real disruption controller counts it."""

from typing import Any

import pytest

from kubeslurm.api import names
from kubeslurm.api.kinds import NODESET, POD, POD_DISRUPTION_BUDGET
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.build.worker import shared
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.transport.connection import Connection
from kubeslurm.local.cluster.cluster import Cluster
from tests.support.follow import following
from tests.support.waiting import eventually

BUSY = 8


def nodeset(namespace: str, **spec: Any) -> Tree:
    metadata = {"namespace": namespace, "name": "gpu"}
    base = {"controllerRef": {"name": "main"}, "slurmd": {"image": "slurmd:1"}}
    return {"apiVersion": NODESET.api_version, "kind": NODESET.kind, "metadata": metadata, "spec": base | spec}


async def busy_worker(kube: Kube, owner: NodeSet, number: int) -> None:
    """A pod that is ready and runs a job, as far as Kubernetes can tell."""
    name = f"gpu-{number}"
    labels = {names.LABEL_CLUSTER: "main", names.LABEL_POD_PROTECT: "true"}
    reference = {"apiVersion": NODESET.api_version, "kind": NODESET.kind, "name": owner.name, "controller": True}
    metadata: Tree = {"namespace": owner.namespace, "name": name, "labels": labels}
    metadata["ownerReferences"] = [reference | {"uid": owner.metadata.uid}]
    spec: Tree = {"containers": [{"name": "slurmd", "image": "slurmd:1"}], "nodeName": "nowhere"}
    spec |= {"serviceAccountName": "default", "automountServiceAccountToken": False}
    await kube.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await kube.patch(POD, Key(owner.namespace, name), {"status": status}, subresource="status")


@pytest.mark.parametrize(
    "spec", [{"scalingMode": "DaemonSet"}, {"replicas": 2}], ids=["daemons", "scale-in from 8 to 2"]
)
async def test_no_busy_worker_may_be_evicted_whatever_replicas_says(
    definitions: Cluster, connection: Connection, namespace: str, spec: Tree
) -> None:
    kube = Kube(connection, Caches(connection), manager="kubeslurm-test")
    definitions.kubectl("-n", namespace, "wait", "--for=create", "serviceaccount/default", "--timeout=180s")
    owner = await kube.create(nodeset(namespace, **spec))
    assert isinstance(owner, NodeSet)
    for number in range(BUSY):
        await busy_worker(kube, owner, number)
    async with following(POD_DISRUPTION_BUDGET, definitions.kubeconfig, namespace) as follower:
        for tree in shared.objects([owner], "main"):
            await follower.kube.apply(tree)
        budget = Key(namespace, "slurm-workers-pdb-main")
        await eventually("all to be counted", lambda: follower.store[budget].status.get("currentHealthy") == BUSY)
        assert follower.store[budget].status["disruptionsAllowed"] == 0


async def test_the_budget_of_the_other_operator_becomes_ours(
    definitions: Cluster, connection: Connection, namespace: str
) -> None:
    former = Kube(connection, Caches(connection), manager="manager")
    owner = await former.create(nodeset(namespace))
    assert isinstance(owner, NodeSet)
    budget = shared.objects([owner], "main")[1]
    await former.create(budget | {"spec": {"maxUnavailable": 0, "selector": budget["spec"]["selector"]}})
    async with following(POD_DISRUPTION_BUDGET, definitions.kubeconfig, namespace) as follower:
        await follower.converge(former)
        taken = await follower.kube.apply(budget)
    assert taken["spec"] == budget["spec"]
