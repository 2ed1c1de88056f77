"""A configuration on its way to slurmctld: tried, delivered, running."""

import pytest

from kubeslurm.api import names
from kubeslurm.slurm.rest.models import Node, Number
from tests.support.controlplane import ControlPlane, started
from tests.support.fake_storage import Address

pytestmark = pytest.mark.looptime


async def test_a_change_is_tried_then_delivered_then_running(plane: ControlPlane) -> None:
    running = await started(plane)
    old = running.status()["configHash"]
    await running.make_controller(extraConf="MaxJobCount=7")
    await running.turn()
    assert "MaxJobCount" not in running.delivered_conf()
    await running.end_trial()
    await running.turn()
    assert "MaxJobCount=7" in running.delivered_conf()
    assert running.status()["configHash"] == old, "not running yet"
    running.refresh_mount()
    await running.turn(4)
    assert running.status()["configHash"] == running.status()["wantedConfigHash"] != old
    assert "MaxJobCount=7" in running.slurm.read
    assert "Restarting" not in await running.sent_events()


async def test_a_reconfigure_that_came_too_early_is_repeated(plane: ControlPlane) -> None:
    running = await started(plane)
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


async def test_a_reconfigure_that_fails_is_reported_as_such_and_repeated(plane: ControlPlane) -> None:
    running = await started(plane)
    await running.make_controller(extraConf="MaxJobCount=7")
    await running.turn()
    await running.end_trial()
    running.slurm.failure = TimeoutError()
    await running.turn()
    running.refresh_mount()
    await running.turn(4)
    degraded = running.condition("Degraded")
    assert degraded["reason"] == "ReconfigureFailed"
    assert "slurmrestd does not answer" in degraded["message"]
    assert running.condition("ConfigAccepted")["status"] == "True", "the configuration itself is not rejected"
    running.slurm.failure = None
    await running.turn(40)
    assert running.condition("Degraded")["reason"] == "Healthy"


async def test_one_worker_that_lags_behind_does_not_restart_all_others(plane: ControlPlane) -> None:
    running = await started(plane)
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


async def test_an_edit_of_the_delivered_configmap_is_undone_and_never_delivered(plane: ControlPlane) -> None:
    running = await started(plane)
    live, count = running.delivered_conf(), running.slurm.reconfigured
    place = Address("configmaps", "ns", "c-config")
    await running.server.edit(place, {"data": {"slurm.conf": live + "NoSuchKey=1\n"}})
    await running.settle()
    await running.turn(3)
    assert running.delivered_conf() == live
    assert running.slurm.reconfigured == count
    assert running.trials() == []
    pod = running.find("pods", "c-controller-0") or {}
    assert names.CONFIG_REFRESHED in pod["metadata"]["annotations"], "the kubelet is told to write the files anew"


async def test_a_new_pod_with_the_same_configuration_needs_no_reconfigure(plane: ControlPlane) -> None:
    running = await started(plane)
    count = running.slurm.reconfigured
    await running.server.remove("c-controller-0", "ns", "pods")
    await running.settle()
    await running.turn()
    await running.run_slurmctld("pod-2")
    await running.turn(3)
    assert running.slurm.reconfigured == count
    assert running.condition("Progressing")["status"] == "False"


async def test_a_setting_that_slurm_takes_only_at_its_start_changes_the_pod_template(plane: ControlPlane) -> None:
    running = await started(plane)
    before = running.find("statefulsets", "c-controller") or {}
    await running.make_controller(extraConf="SelectType=select/linear")
    await running.turn()
    await running.end_trial()
    await running.turn(2)
    after = running.find("statefulsets", "c-controller") or {}
    assert before["spec"]["template"] != after["spec"]["template"]
    assert "Slurm takes SelectType only at its start" in (await running.sent_events())["Restarting"]


async def test_a_topology_that_comes_or_goes_changes_the_pod_template_and_another_does_not(plane: ControlPlane) -> None:
    running = await started(plane)
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
    assert "Slurm takes topology.yaml only at its start" in (await running.sent_events())["Restarting"]
