"""A Controller from its first pass to its end: configuration, delivery, faults, deletion."""

import base64
from collections.abc import AsyncIterator

import pytest

from kubeslurm.build import names
from kubeslurm.reconcile.refusal import PAUSE
from kubeslurm.slurm import tokens
from kubeslurm.slurm.models import Node, Number
from tests.support.controlplane import JWT_KEY, KEY, ControlPlane
from tests.support.fake_apiserver import Address

pytestmark = pytest.mark.looptime

READY = {"type": "Ready", "status": "True", "reason": "x", "message": ""}
BAD = "JobSubmitPlugins=nosuch"
REFUSAL = "[2026-01-01T00:00:00.000] fatal: JobSubmitPlugins: no plugin of that name"


@pytest.fixture
async def world() -> AsyncIterator[ControlPlane]:
    made = ControlPlane()
    await made.start()
    await made.make_keys()
    await made.make_controller()
    yield made
    await made.stop()


async def started(world: ControlPlane) -> ControlPlane:
    """A cluster whose first configuration is live and proven; no fixture, because there waits would be real ones."""
    await world.turn()
    await world.end_trial()
    await world.turn()
    await world.run_slurmctld()
    await world.connect()
    await world.turn(6)
    assert world.status()["configHash"] == world.status()["wantedConfigHash"] != ""
    return world


async def test_no_slurmctld_is_made_before_its_configuration_passed(world: ControlPlane) -> None:
    await world.turn(3)
    assert len(world.trials()) == 1
    assert world.find("configmaps", "c-config") is None
    assert world.find("statefulsets", "c-controller") is None
    await world.end_trial()
    await world.turn()
    assert world.live_conf().startswith("#\n### GENERAL ###\nClusterName=ns_c\n")
    assert world.find("statefulsets", "c-controller") is not None
    assert world.trials() == []


async def test_a_refused_first_configuration_is_explained_and_starts_nothing(world: ControlPlane) -> None:
    await world.make_controller(extraConf=BAD)
    await world.turn()
    await world.end_trial(1, REFUSAL)
    await world.turn(2)
    assert world.find("statefulsets", "c-controller") is None
    assert world.condition("ConfigAccepted")["reason"] == "ConfigRefused"
    assert "slurm.conf:30: JobSubmitPlugins: no plugin" in world.condition("Ready")["message"]


async def test_a_quiet_cluster_is_not_written_at_all(world: ControlPlane) -> None:
    running = await started(world)
    before = running.writes
    await running.turn(5)
    assert running.writes == before


async def test_a_change_is_tried_then_delivered_then_proven(world: ControlPlane) -> None:
    running = await started(world)
    old = running.status()["configHash"]
    await running.make_controller(extraConf="MaxJobCount=7")
    await running.turn()
    assert "MaxJobCount" not in running.live_conf()
    await running.end_trial()
    await running.turn()
    assert "MaxJobCount=7" in running.live_conf()
    assert running.status()["configHash"] == old, "not running yet"
    running.refresh_mount()
    await running.turn(4)
    assert running.status()["configHash"] == running.status()["wantedConfigHash"] != old
    assert "MaxJobCount=7" in running.slurm.read
    assert "RestartNeeded" not in await running.said()


async def test_a_reconfigure_that_came_too_early_is_repeated(world: ControlPlane) -> None:
    running = await started(world)
    await running.make_controller(extraConf="MaxJobCount=7")
    await running.turn()
    await running.end_trial()
    count = running.slurm.reconfigured
    await running.turn(6)
    assert running.slurm.reconfigured == count + 1
    assert running.status()["configHash"] != running.status()["wantedConfigHash"], "the kubelet has not refreshed it"
    running.refresh_mount()
    await running.turn(40)
    assert running.status()["configHash"] == running.status()["wantedConfigHash"]


async def test_a_refused_change_leaves_the_live_one(world: ControlPlane) -> None:
    running = await started(world)
    live = running.live_conf()
    await running.make_controller(extraConf=BAD)
    await running.turn()
    await running.end_trial(1, REFUSAL)
    await running.turn(3)
    assert running.live_conf() == live
    assert running.condition("Ready")["status"] == "True"
    assert running.condition("Degraded")["reason"] == "ConfigRefused"
    assert running.status()["configHash"] in running.condition("ConfigAccepted")["message"]


async def test_a_refusal_is_remembered_by_the_next_operator_process(world: ControlPlane) -> None:
    running = await started(world)
    await running.make_controller(extraConf=BAD)
    await running.turn()
    await running.end_trial(1, REFUSAL)
    await running.turn()
    await running.start()
    await running.turn(2)
    assert len(running.trials()) == 1, "the old trial is the record, no new one is needed"
    assert running.condition("ConfigAccepted")["reason"] == "ConfigRefused"


async def test_a_trial_that_the_server_does_not_take_is_told_and_asked_for_once_a_minute(world: ControlPlane) -> None:
    await world.turn()
    await world.end_trial()
    await world.turn()
    live, before = world.live_conf(), world.server.count("POST", "pods")
    await world.make_controller(extraConf="MaxJobCount=7")
    world.server.refused = "pods"
    result = await world.turn()
    assert result is not None
    assert result.after == PAUSE
    assert world.condition("Degraded")["reason"] == "TrialFailed"
    assert "the API server refuses" in world.condition("Degraded")["message"]
    await world.turn(2)
    assert world.server.count("POST", "pods") == before + 3
    assert world.live_conf() == live
    world.server.refused = ""
    await world.turn()
    assert len(world.trials()) == 1


async def test_a_statefulset_that_the_server_does_not_take_is_told(world: ControlPlane) -> None:
    running = await started(world)
    await running.make_controller(slurmctld={"image": ""})
    running.server.refused = "statefulsets"
    result = await running.turn()
    assert result is not None
    assert result.after == PAUSE
    assert running.condition("Degraded")["reason"] == "Refused"
    assert running.condition("Ready")["status"] == "True", "what runs goes on"


async def test_a_trial_that_could_not_run_is_repeated_not_held_against_the_configuration(world: ControlPlane) -> None:
    running = await started(world)
    await running.make_controller(extraConf="MaxJobCount=7")
    await running.turn()
    first = running.trials()[0]["metadata"]["uid"]
    await running.end_trial(137)
    await running.turn()
    assert running.condition("ConfigAccepted")["reason"] == "TrialFailed"
    await running.turn(3)
    assert running.trials()[0]["metadata"]["uid"] != first


async def test_an_edit_of_the_live_configmap_is_undone_and_never_delivered(world: ControlPlane) -> None:
    running = await started(world)
    live, count = running.live_conf(), running.slurm.reconfigured
    place = Address("configmaps", "ns", "c-config")
    await running.server.edit(place, {"data": {"slurm.conf": live + "NoSuchKey=1\n"}})
    await running.settle()
    await running.turn(3)
    assert running.live_conf() == live
    assert running.slurm.reconfigured == count
    assert running.trials() == []
    pod = running.find("pods", "c-controller-0") or {}
    assert names.CONFIG_REFRESHED in pod["metadata"]["annotations"], "the kubelet is told to write the files anew"


async def test_an_edit_is_undone_even_while_a_refused_change_waits(world: ControlPlane) -> None:
    running = await started(world)
    live = running.live_conf()
    await running.make_controller(extraConf=BAD)
    await running.turn()
    await running.end_trial(1, REFUSAL)
    await running.turn()
    await running.server.edit(Address("configmaps", "ns", "c-config"), {"data": {"slurm.conf": "junk"}})
    await running.settle()
    await running.turn(2)
    assert running.live_conf() == live


async def test_a_new_pod_with_the_same_configuration_needs_no_reconfigure(world: ControlPlane) -> None:
    running = await started(world)
    count = running.slurm.reconfigured
    await running.server.remove("c-controller-0", "ns", "pods")
    await running.settle()
    await running.turn()
    await running.run_slurmctld("pod-2")
    await running.turn(3)
    assert running.slurm.reconfigured == count
    assert running.condition("Progressing")["status"] == "False"


async def test_a_setting_that_slurm_takes_only_at_its_start_changes_the_pod_template(world: ControlPlane) -> None:
    running = await started(world)
    before = running.find("statefulsets", "c-controller") or {}
    await running.make_controller(extraConf="SelectType=select/linear")
    await running.turn()
    await running.end_trial()
    await running.turn(2)
    after = running.find("statefulsets", "c-controller") or {}
    assert before["spec"]["template"] != after["spec"]["template"]
    assert "Slurm takes SelectType only at its start" in (await running.said())["RestartNeeded"]


async def test_a_topology_that_comes_or_goes_changes_the_pod_template_and_another_does_not(world: ControlPlane) -> None:
    running = await started(world)
    templates = [(running.find("statefulsets", "c-controller") or {})["spec"]["template"]]
    await running.make_controller(configFileRefs=[{"name": "files"}])
    topology = "- topology: flat\n  cluster_default: true\n  flat: true\n"
    for text in (topology, f"# another\n{topology}"):
        await running.plain("ConfigMap", "files", "configmaps", data={"topology.yaml": text})
        await running.turn()
        await running.end_trial()
        await running.turn(2)
        templates.append((running.find("statefulsets", "c-controller") or {})["spec"]["template"])
    assert templates[0] != templates[1] == templates[2]
    assert "Slurm takes topology.yaml only at its start" in (await running.said())["RestartNeeded"]


async def test_a_missing_key_is_named_and_nothing_is_touched(world: ControlPlane) -> None:
    running = await started(world)
    await running.server.remove("keys", "ns", "secrets")
    await running.settle()
    await running.turn()
    assert running.condition("Degraded")["reason"] == "KeyMissing"
    assert "Secret ns/keys" in running.condition("Degraded")["message"]
    assert running.find("statefulsets", "c-controller") is not None


async def test_a_missing_configmap_is_named(world: ControlPlane) -> None:
    running = await started(world)
    await running.make_controller(configFileRefs=[{"name": "files"}])
    await running.turn()
    assert running.condition("Degraded")["reason"] == "ConfigMapMissing"
    await running.plain("ConfigMap", "files", "configmaps", data={"gres.conf": "AutoDetect=off\n"})
    await running.turn()
    await running.end_trial()
    await running.turn()
    found = running.find("configmaps", "c-config") or {}
    assert found["data"]["gres.conf"] == "AutoDetect=off\n"


async def test_a_missing_accounting_is_named_and_never_read_as_none_wanted(world: ControlPlane) -> None:
    running = await started(world)
    live = running.live_conf()
    await running.make_controller(accountingRef={"name": "records"})
    await running.turn(2)
    assert "Accounting ns/records does not exist" in running.condition("Degraded")["message"]
    assert running.live_conf() == live
    assert not running.trials()


async def test_deletion_waits_for_the_nodesets(world: ControlPlane) -> None:
    running = await started(world)
    spec = {"controllerRef": {"name": "c"}}
    await running.make("NodeSet", "n", "nodesets", spec=spec)
    await mark_deleted(running)
    await running.turn()
    assert running.condition("Progressing")["reason"] == "DeletionHeld"
    await running.server.remove("n", "ns", "nodesets")
    await running.settle()
    await running.turn()
    assert running.find("controllers", "c") is None


async def test_deletion_can_be_forced(world: ControlPlane) -> None:
    running = await started(world)
    await running.make("NodeSet", "n", "nodesets", spec={"controllerRef": {"name": "c"}})
    await mark_deleted(running, {names.FORCE_DELETE: "true"})
    await running.turn()
    assert running.find("controllers", "c") is None


async def test_high_availability_is_accepted_and_reported_as_not_served(world: ControlPlane) -> None:
    running = await started(world)
    await running.make_controller(ha={"enabled": True, "backups": 1})
    await running.turn()
    assert running.condition("Degraded")["reason"] == "HighAvailabilityNotServed"
    assert running.condition("Ready")["status"] == "True"


async def test_an_external_controller_gets_only_the_file_that_slurmrestd_needs(world: ControlPlane) -> None:
    await world.make_controller(external=True, externalConfig={"host": "ctl.example.org", "port": 7817})
    await world.turn(2)
    assert "SlurmctldHost=ctl.example.org\nSlurmctldPort=7817\n" in world.live_conf()
    assert world.find("statefulsets", "c-controller") is None
    assert world.trials() == []


async def test_slurmrestd_waits_for_the_first_configuration_and_then_follows_it(world: ControlPlane) -> None:
    await world.make("RestApi", "r", "restapis", spec={"controllerRef": {"name": "c"}, "slurmrestd": {"image": "r:1"}})
    key = KEY._replace(name="r")
    await world.restapi.reconcile(key)
    assert world.find("deployments", "r-restapi") is None
    assert world.condition("Progressing", "restapis", "r")["reason"] == "WaitingForConfig"
    await world.turn()
    await world.end_trial()
    await world.turn()
    await world.restapi.reconcile(key)
    assert world.find("deployments", "r-restapi") is not None
    before = world.writes
    await world.restapi.reconcile(key)
    await world.restapi.reconcile(key)
    assert world.writes <= before + 1
    assert "RestartNeeded" not in await world.said()
    live = world.find("configmaps", "c-config") or {}
    conf = {"slurm.conf": live["data"]["slurm.conf"] + "SlurmctldPort=7777\n"}
    await world.server.put(live | {"data": live["data"] | conf}, "configmaps")
    await world.settle()
    await world.restapi.reconcile(key)
    assert "Deployment r-restapi" in (await world.said())["RestartNeeded"]


async def test_all_ready_replicas_are_told_to_the_slurm_side(world: ControlPlane) -> None:
    await world.make("RestApi", "r", "restapis", spec={"controllerRef": {"name": "c"}, "service": {"port": 80}})
    await world.slurm_side.reconcile(KEY)
    cluster = world.clusters.of(KEY)
    assert cluster is not None
    assert list(cluster.client.transport.servers) == ["http://r-restapi.ns:80"]
    for number, ready in ((1, "True"), (2, "False"), (3, "True")):
        labels = {names.LABEL_NAME: names.SLURMRESTD, names.LABEL_INSTANCE: "r"}
        status = {"podIP": f"10.0.0.{number}", "conditions": [{"type": "Ready", "status": ready}]}
        metadata = {"name": f"r-{number}", "namespace": "ns", "labels": labels}
        await world.server.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": status}, "pods")
    await world.settle()
    await world.slurm_side.reconcile(KEY)
    assert list(cluster.client.transport.servers) == ["http://10.0.0.1:6820", "http://10.0.0.3:6820"]
    await world.server.remove("r", "ns", "restapis")
    await world.settle()
    await world.slurm_side.reconcile(KEY)
    assert world.clusters.of(KEY) is None, "nobody may act on the word of a cluster that cannot be asked"


async def mark_deleted(world: ControlPlane, annotations: dict[str, str] | None = None) -> None:
    tree = world.find("controllers", "c") or {}
    more = {"deletionTimestamp": "2026-01-01T00:00:00Z", "annotations": annotations or {}}
    await world.server.put(tree | {"metadata": tree["metadata"] | more}, "controllers")
    await world.settle()


async def test_a_deleted_key_does_not_cut_off_a_cluster_that_has_to_be_drained(world: ControlPlane) -> None:
    await world.make("RestApi", "r", "restapis", spec={"controllerRef": {"name": "c"}})
    await world.slurm_side.reconcile(KEY)
    await world.server.remove("keys", "ns", "secrets")
    await world.settle()
    await world.slurm_side.reconcile(KEY)
    assert world.clusters.of(KEY) is not None


async def test_an_operator_started_in_the_middle_of_an_uninstall_still_has_the_key(world: ControlPlane) -> None:
    await world.make("RestApi", "r", "restapis", spec={"controllerRef": {"name": "c"}})
    await world.make("NodeSet", "n", "nodesets", spec={"controllerRef": {"name": "c"}})
    await world.slurm_side.reconcile(KEY)
    await world.server.remove("keys", "ns", "secrets")
    await mark_deleted(world)
    await world.start()
    await world.slurm_side.reconcile(KEY)
    cluster = world.clusters.of(KEY)
    assert cluster is not None
    assert tokens.read(JWT_KEY, cluster.token()).sun == tokens.OWN_USER


async def test_the_kept_key_follows_the_real_one_and_costs_no_write_at_rest(world: ControlPlane) -> None:
    await world.make("RestApi", "r", "restapis", spec={"controllerRef": {"name": "c"}})
    await world.slurm_side.reconcile(KEY)
    assert world.find("secrets", names.kept_key("c")) is None, "there is nothing to drain"
    await world.make("NodeSet", "n", "nodesets", spec={"controllerRef": {"name": "c"}})
    await world.slurm_side.reconcile(KEY)
    before = world.writes
    await world.slurm_side.reconcile(KEY)
    assert world.writes == before
    await world.make_keys(b"another-" * 4)
    await world.slurm_side.reconcile(KEY)
    kept = world.find("secrets", names.kept_key("c")) or {}
    assert base64.b64decode(kept["data"]["jwt.key"]) == b"another-" * 4
    assert kept["metadata"]["ownerReferences"][0]["kind"] == "Controller", "it goes with the cluster"


async def test_the_first_slurmctld_waits_for_its_database(world: ControlPlane) -> None:
    await world.make("Accounting", "a", "accountings", spec={}, status={"conditions": [READY | {"status": "False"}]})
    await world.make_controller(accountingRef={"name": "a"})
    await world.turn()
    await world.end_trial()
    await world.turn()
    assert world.find("statefulsets", "c-controller") is None
    assert world.condition("Progressing")["reason"] == "WaitingForAccounting"
    await world.make("Accounting", "a", "accountings", spec={}, status={"conditions": [READY]})
    await world.turn()
    assert world.find("statefulsets", "c-controller") is not None


async def test_a_pod_on_a_node_that_is_gone_is_freed_and_one_on_a_silent_node_is_not(world: ControlPlane) -> None:
    running = await started(world)
    pod = running.find("pods", "c-controller-0") or {}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "spec": {}, "status": {}}
    await running.server.put(node, "nodes")
    await running.server.put(pod | {"spec": {"nodeName": "n1"}}, "pods")
    await running.settle()
    await running.turn()
    assert running.find("pods", "c-controller-0") is not None
    await running.server.remove("n1", "", "nodes")
    await running.settle()
    await running.turn()
    assert running.find("pods", "c-controller-0") is None


async def test_a_pod_on_a_node_that_is_out_of_service_is_freed(world: ControlPlane) -> None:
    running = await started(world)
    pod = running.find("pods", "c-controller-0") or {}
    taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "spec": {"taints": [taint]}, "status": {}}
    await running.server.put(node, "nodes")
    await running.server.put(pod | {"spec": {"nodeName": "n1"}}, "pods")
    await running.settle()
    await running.turn()
    assert running.find("pods", "c-controller-0") is None


async def test_one_worker_that_lags_behind_does_not_restart_all_others(world: ControlPlane) -> None:
    running = await started(world)
    running.slurm.nodes_now = (Node(name="w", state=("IDLE",), slurmd_start_time=Number(set=True, number=0)),)
    await running.make_controller(extraConf="MaxJobCount=7")
    await running.turn()
    await running.end_trial()
    await running.turn()
    running.refresh_mount()
    count = running.slurm.reconfigured
    await running.turn(80)
    assert running.slurm.reconfigured == count + 1
    assert running.status()["configHash"] == running.status()["wantedConfigHash"], "the others run with it"


async def test_an_ipv6_address_stands_in_brackets(world: ControlPlane) -> None:
    await world.make("RestApi", "r", "restapis", spec={"controllerRef": {"name": "c"}})
    labels = {names.LABEL_NAME: names.SLURMRESTD, names.LABEL_INSTANCE: "r"}
    status = {"podIP": "fd00::7", "conditions": [{"type": "Ready", "status": "True"}]}
    metadata = {"name": "r-1", "namespace": "ns", "labels": labels}
    await world.server.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": status}, "pods")
    await world.settle()
    await world.slurm_side.reconcile(KEY)
    cluster = world.clusters.of(KEY)
    assert cluster is not None
    assert list(cluster.client.transport.servers) == ["http://[fd00::7]:6820"]
