"""A Controller from its first pass to its end: what it starts, what it lacks, what holds it."""

import pytest

from kubeslurm.api import names
from kubeslurm.api.kinds import NODE
from kubeslurm.api.meta import Tree
from kubeslurm.control.refusals import PAUSE
from kubeslurm.decide.node_loss import MISSING_SECONDS
from tests.support.controlplane import WATCHED, ControlPlane, started

pytestmark = pytest.mark.looptime

READY = {"type": "Ready", "status": "True", "reason": "x", "message": ""}


async def test_no_slurmctld_is_made_before_its_configuration_passed(plane: ControlPlane) -> None:
    await plane.turn(3)
    assert len(plane.trials()) == 1
    assert plane.find("configmaps", "c-config") is None
    assert plane.find("statefulsets", "c-controller") is None
    await plane.end_trial()
    await plane.turn()
    assert plane.delivered_conf().startswith("#\n### GENERAL ###\nClusterName=ns_c\n")
    assert plane.find("statefulsets", "c-controller") is not None
    assert plane.trials() == []


async def test_a_quiet_cluster_is_not_written_at_all(plane: ControlPlane) -> None:
    running = await started(plane)
    before = running.writes
    await running.turn(5)
    assert running.writes == before


async def test_a_statefulset_that_the_server_does_not_take_is_told(plane: ControlPlane) -> None:
    running = await started(plane)
    await running.make_controller(slurmctld={"image": ""})
    running.server.refused = "statefulsets"
    result = await running.turn()
    assert result is not None
    assert result.after == PAUSE
    assert running.condition("Degraded")["reason"] == "Rejected"
    assert running.condition("Ready")["status"] == "True", "what runs goes on"


async def test_a_missing_key_is_named_and_nothing_is_touched(plane: ControlPlane) -> None:
    running = await started(plane)
    await running.plain("Secret", "keys", "secrets", data={})
    await running.turn()
    assert running.condition("Degraded")["reason"] == "SecretKeyNotFound"
    assert "Secret ns/keys" in running.condition("Degraded")["message"]
    assert running.find("statefulsets", "c-controller") is not None


async def test_a_missing_configmap_is_named(plane: ControlPlane) -> None:
    running = await started(plane)
    await running.make_controller(configFileRefs=[{"name": "files"}])
    await running.turn()
    assert running.condition("Degraded")["reason"] == "ConfigMapNotFound"
    await running.plain("ConfigMap", "files", "configmaps", data={"gres.conf": "AutoDetect=off\n"})
    await running.turn()
    await running.end_trial()
    await running.turn()
    found = running.find("configmaps", "c-config") or {}
    assert found["data"]["gres.conf"] == "AutoDetect=off\n"


async def test_a_missing_accounting_is_named_and_never_read_as_none_wanted(plane: ControlPlane) -> None:
    running = await started(plane)
    live = running.delivered_conf()
    await running.make_controller(accountingRef={"name": "records"})
    await running.turn(2)
    assert "Accounting ns/records does not exist" in running.condition("Degraded")["message"]
    assert running.delivered_conf() == live
    assert not running.trials()


async def test_deletion_waits_for_the_nodesets(plane: ControlPlane) -> None:
    running = await started(plane)
    spec = {"controllerRef": {"name": "c"}}
    await running.make("NodeSet", "n", "nodesets", spec=spec)
    await running.mark_deleted()
    await running.turn()
    assert running.condition("Progressing")["reason"] == "DeletionBlocked"
    await running.server.remove("n", "ns", "nodesets")
    await running.settle()
    await running.turn()
    assert running.find("controllers", "c") is None


async def test_what_drains_need_has_an_owner_that_goes_last(plane: ControlPlane) -> None:
    running = await started(plane)
    for plural, name in (("statefulsets", "c-controller"), ("services", "c-controller"), ("configmaps", "c-config")):
        metadata = (running.find(plural, name) or {})["metadata"]
        assert [each["kind"] for each in metadata["ownerReferences"]] == ["Controller", "ConfigMap"]
    await running.make("NodeSet", "n", "nodesets", spec={"controllerRef": {"name": "c"}})
    await running.mark_deleted()
    await running.turn()
    assert running.find("configmaps", "c-second-owner") is not None
    await running.server.remove("n", "ns", "nodesets")
    await running.settle()
    await running.turn()
    assert running.find("configmaps", "c-second-owner") is None


async def test_nothing_is_remembered_of_a_controller_that_is_gone(plane: ControlPlane) -> None:
    running = await started(plane)
    assert len(running.controller.memories) == 1
    await running.mark_deleted()
    await running.turn()
    await running.settle()
    await running.turn()
    assert len(running.controller.memories) == 0


async def test_deletion_can_be_forced(plane: ControlPlane) -> None:
    running = await started(plane)
    await running.make("NodeSet", "n", "nodesets", spec={"controllerRef": {"name": "c"}})
    await running.mark_deleted({names.FORCE_DELETE: "true"})
    await running.turn()
    assert running.find("controllers", "c") is None


async def test_high_availability_is_accepted_and_reported_as_not_supported(plane: ControlPlane) -> None:
    running = await started(plane)
    await running.make_controller(ha={"enabled": True, "backups": 1})
    await running.turn()
    assert running.condition("Degraded")["reason"] == "NotSupported"
    assert running.condition("Ready")["status"] == "True"


async def test_an_external_controller_gets_only_the_file_that_slurmrestd_needs(plane: ControlPlane) -> None:
    await plane.make_controller(external=True, externalConfig={"host": "ctl.example.org", "port": 7817})
    await plane.turn(2)
    assert "SlurmctldHost=ctl.example.org\nSlurmctldPort=7817\n" in plane.delivered_conf()
    assert plane.find("statefulsets", "c-controller") is None
    assert plane.trials() == []


async def test_an_external_controller_that_is_not_reachable_says_so(plane: ControlPlane) -> None:
    await plane.make_controller(external=True, externalConfig={"host": "ctl.example.org", "port": 7817})
    await plane.turn(2)
    assert plane.condition("Ready")["status"] == "False"
    assert plane.condition("Ready")["reason"] == "SlurmNotReachable"


async def test_no_configuration_is_called_accepted_while_its_keys_are_missing(plane: ControlPlane) -> None:
    await plane.plain("Secret", "keys", "secrets", data={})
    await plane.turn()
    accepted = plane.condition("ConfigAccepted")
    assert (accepted["status"], accepted["reason"]) == ("Unknown", "SecretKeyNotFound")


async def test_the_first_slurmctld_waits_for_its_database(plane: ControlPlane) -> None:
    await plane.make("Accounting", "a", "accountings", spec={}, status={"conditions": [READY | {"status": "False"}]})
    await plane.make_controller(accountingRef={"name": "a"})
    await plane.turn()
    await plane.end_trial()
    await plane.turn()
    assert plane.find("statefulsets", "c-controller") is None
    assert plane.condition("Progressing")["reason"] == "WaitingForAccounting"
    await plane.make("Accounting", "a", "accountings", spec={}, status={"conditions": [READY]})
    await plane.turn()
    assert plane.find("statefulsets", "c-controller") is not None


async def put_on_node(plane: ControlPlane, spec: Tree) -> None:
    """slurmctld's pod runs on this node."""
    pod = plane.find("pods", "c-controller-0") or {}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "spec": spec, "status": {}}
    await plane.server.put(node, "nodes")
    await plane.server.put(pod | {"spec": {"nodeName": "n1"}}, "pods")
    await plane.settle()


async def lose_node(plane: ControlPlane, *, ready: bool) -> None:
    """The Node object goes, and the pod counts as ready or not."""
    await plane.server.remove("n1", "", "nodes")
    pod = plane.find("pods", "c-controller-0") or {}
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    await plane.server.put(pod | {"status": pod["status"] | {"conditions": [condition]}}, "pods")
    await plane.settle()


async def test_a_pod_on_a_node_that_stays_away_is_freed_and_one_on_a_silent_node_is_not(plane: ControlPlane) -> None:
    running = await started(plane)
    await put_on_node(running, {})
    await running.turn()
    assert running.find("pods", "c-controller-0") is not None
    await lose_node(running, ready=False)
    result = await running.turn()
    assert running.find("pods", "c-controller-0") is not None, "it may come back"
    assert result is not None
    assert result.after == MISSING_SECONDS
    await running.turn()
    assert running.find("pods", "c-controller-0") is None


async def test_a_slurmctld_that_is_ready_is_not_freed_however_long_its_node_is_away(plane: ControlPlane) -> None:
    running = await started(plane)
    await put_on_node(running, {})
    await lose_node(running, ready=True)
    await running.turn(8)
    assert running.find("pods", "c-controller-0") is not None


async def test_a_node_that_only_our_memory_lacks_is_not_lost(plane: ControlPlane) -> None:
    running = await started(plane)
    await put_on_node(running, {})
    await lose_node(running, ready=False)
    await running.turn()
    # It is back, and the watch has not told yet.
    running.tasks[WATCHED.index(NODE)].cancel()
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "spec": {}, "status": {}}
    await running.server.put(node, "nodes")
    await running.turn(3)
    assert running.find("pods", "c-controller-0") is not None


async def test_a_pod_on_a_node_that_is_out_of_service_is_freed(plane: ControlPlane) -> None:
    running = await started(plane)
    await put_on_node(running, {"taints": [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]})
    await running.turn()
    assert running.find("pods", "c-controller-0") is None
