"""A configuration whose trial fails, or cannot even begin: it is explained, and what is delivered stays."""

import pytest

from kubeslurm.control.refusals import PAUSE
from tests.support.controlplane import ControlPlane, started
from tests.support.fake_storage import Address

pytestmark = pytest.mark.looptime

BAD = "JobSubmitPlugins=nosuch"
REFUSAL = "[2026-01-01T00:00:00.000] fatal: JobSubmitPlugins: no plugin of that name"


async def refuse(plane: ControlPlane) -> None:
    """A configuration that Slurm does not take is tried."""
    await plane.make_controller(extraConf=BAD)
    await plane.turn()
    await plane.end_trial(1, REFUSAL)


async def test_a_refused_first_configuration_is_explained_and_starts_nothing(plane: ControlPlane) -> None:
    await refuse(plane)
    await plane.turn(2)
    assert plane.find("statefulsets", "c-controller") is None
    assert plane.condition("ConfigAccepted")["reason"] == "ConfigRejected"
    assert "slurm.conf:30: JobSubmitPlugins: no plugin" in plane.condition("Ready")["message"]


async def test_a_rejected_change_leaves_what_is_delivered(plane: ControlPlane) -> None:
    running = await started(plane)
    live = running.delivered_conf()
    await refuse(running)
    await running.turn(3)
    assert running.delivered_conf() == live
    assert running.condition("Ready")["status"] == "True"
    assert running.condition("Degraded")["reason"] == "ConfigRejected"
    assert running.status()["configHash"] in running.condition("ConfigAccepted")["message"]


async def test_a_refusal_is_remembered_by_the_next_operator_process(plane: ControlPlane) -> None:
    running = await started(plane)
    await refuse(running)
    await running.turn()
    await running.start()
    await running.turn(2)
    assert len(running.trials()) == 1, "the old trial is the record, no new one is needed"
    assert running.condition("ConfigAccepted")["reason"] == "ConfigRejected"


async def test_a_trial_that_the_server_does_not_take_is_told_and_asked_for_once_a_minute(plane: ControlPlane) -> None:
    await plane.turn()
    await plane.end_trial()
    await plane.turn()
    live, before = plane.delivered_conf(), plane.server.count("POST", "pods")
    await plane.make_controller(extraConf="MaxJobCount=7")
    plane.server.refused = "pods"
    result = await plane.turn()
    assert result is not None
    assert result.after == PAUSE
    assert plane.condition("Degraded")["reason"] == "ConfigTrialInconclusive"
    assert "the API server refuses" in plane.condition("Degraded")["message"]
    await plane.turn(2)
    assert plane.server.count("POST", "pods") == before + 3
    assert plane.delivered_conf() == live
    plane.server.refused = ""
    await plane.turn()
    assert len(plane.trials()) == 1


async def test_a_trial_that_could_not_run_is_repeated_not_held_against_the_configuration(plane: ControlPlane) -> None:
    running = await started(plane)
    await running.make_controller(extraConf="MaxJobCount=7")
    await running.turn()
    first = running.trials()[0]["metadata"]["uid"]
    await running.end_trial(137)
    await running.turn()
    assert running.condition("ConfigAccepted")["reason"] == "ConfigTrialInconclusive"
    await running.turn(3)
    assert running.trials()[0]["metadata"]["uid"] != first


async def test_an_edit_is_undone_even_while_a_refused_change_waits(plane: ControlPlane) -> None:
    running = await started(plane)
    live = running.delivered_conf()
    await refuse(running)
    await running.turn()
    await running.server.edit(Address("configmaps", "ns", "c-config"), {"data": {"slurm.conf": "junk"}})
    await running.settle()
    await running.turn(2)
    assert running.delivered_conf() == live
