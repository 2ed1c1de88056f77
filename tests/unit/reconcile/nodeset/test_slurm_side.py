"""slurmrestd, and how Slurm is asked through it: its addresses, and a key that outlives its Secret."""

import pytest

from kubeslurm.api import names
from kubeslurm.slurm import tokens
from tests.support.controlplane import JWT_KEY, KEY, ControlPlane

pytestmark = pytest.mark.looptime


async def test_slurmrestd_waits_for_the_first_configuration_and_then_follows_it(plane: ControlPlane) -> None:
    await plane.make("RestApi", "r", "restapis", spec={"controllerRef": {"name": "c"}, "slurmrestd": {"image": "r:1"}})
    key = KEY._replace(name="r")
    await plane.restapi.reconcile(key)
    assert plane.find("deployments", "r-restapi") is None
    assert plane.condition("Progressing", "restapis", "r")["reason"] == "WaitingForConfig"
    await plane.turn()
    await plane.end_trial()
    await plane.turn()
    await plane.restapi.reconcile(key)
    assert plane.find("deployments", "r-restapi") is not None
    before = plane.writes
    await plane.restapi.reconcile(key)
    await plane.restapi.reconcile(key)
    assert plane.writes <= before + 1
    assert "Restarting" not in await plane.sent_events()
    live = plane.find("configmaps", "c-config") or {}
    conf = {"slurm.conf": live["data"]["slurm.conf"] + "SlurmctldPort=7777\n"}
    await plane.server.put(live | {"data": live["data"] | conf}, "configmaps")
    await plane.settle()
    await plane.restapi.reconcile(key)
    assert "Deployment r-restapi" in (await plane.sent_events())["Restarting"]


async def put_replica(plane: ControlPlane, name: str, address: str, ready: str) -> None:
    labels = {names.LABEL_NAME: names.SLURMRESTD, names.LABEL_INSTANCE: "r"}
    status = {"podIP": address, "conditions": [{"type": "Ready", "status": ready}]}
    metadata = {"name": name, "namespace": "ns", "labels": labels}
    await plane.server.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": status}, "pods")
    await plane.settle()


async def test_all_ready_replicas_are_told_to_the_slurm_side(plane: ControlPlane) -> None:
    await plane.make("RestApi", "r", "restapis", spec={"controllerRef": {"name": "c"}, "service": {"port": 80}})
    await plane.slurm_side.reconcile(KEY)
    cluster = plane.clusters.of(KEY)
    assert cluster is not None
    assert list(cluster.client.transport.servers) == ["http://r-restapi.ns:80"]
    for number, ready in ((1, "True"), (2, "False"), (3, "True")):
        await put_replica(plane, f"r-{number}", f"10.0.0.{number}", ready)
    await plane.slurm_side.reconcile(KEY)
    assert list(cluster.client.transport.servers) == ["http://10.0.0.1:6820", "http://10.0.0.3:6820"]
    await plane.server.remove("r", "ns", "restapis")
    await plane.settle()
    await plane.slurm_side.reconcile(KEY)
    assert plane.clusters.of(KEY) is None, "nobody may act on the word of a cluster that cannot be asked"


async def test_an_ipv6_address_stands_in_brackets(plane: ControlPlane) -> None:
    await plane.make("RestApi", "r", "restapis", spec={"controllerRef": {"name": "c"}})
    await put_replica(plane, "r-1", "fd00::7", "True")
    await plane.slurm_side.reconcile(KEY)
    cluster = plane.clusters.of(KEY)
    assert cluster is not None
    assert list(cluster.client.transport.servers) == ["http://[fd00::7]:6820"]


async def test_a_deleted_key_does_not_cut_off_a_cluster_that_has_to_be_drained(plane: ControlPlane) -> None:
    await plane.make("RestApi", "r", "restapis", spec={"controllerRef": {"name": "c"}})
    await plane.slurm_side.reconcile(KEY)
    await plane.server.remove("keys", "ns", "secrets")
    await plane.settle()
    await plane.slurm_side.reconcile(KEY)
    assert plane.clusters.of(KEY) is not None


async def test_an_operator_started_in_the_middle_of_an_uninstall_still_has_the_key(plane: ControlPlane) -> None:
    await plane.make("RestApi", "r", "restapis", spec={"controllerRef": {"name": "c"}})
    await plane.make("NodeSet", "n", "nodesets", spec={"controllerRef": {"name": "c"}})
    await plane.turn()
    await plane.server.remove("keys", "ns", "secrets")
    await plane.mark_deleted()
    await plane.start()
    await plane.slurm_side.reconcile(KEY)
    cluster = plane.clusters.of(KEY)
    assert cluster is not None
    assert tokens.read(JWT_KEY, cluster.token()).sun == tokens.OWN_USER


async def test_only_answers_of_the_cluster_of_this_name_count(plane: ControlPlane) -> None:
    await plane.make("RestApi", "r", "restapis", spec={"controllerRef": {"name": "c"}})
    await plane.slurm_side.reconcile(KEY)
    cluster = plane.clusters.of(KEY)
    assert cluster is not None
    assert cluster.client.transport.cluster == "ns_c"
    text = "ClusterName=ns_c\nClusterName=theirs\n"
    await plane.plain("ConfigMap", "c-config", "configmaps", data={"slurm.conf": text})
    await plane.slurm_side.reconcile(KEY)
    assert cluster.client.transport.cluster == "theirs", "a line of the user wins"
