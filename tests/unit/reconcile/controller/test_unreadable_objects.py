"""An object of a cluster that cannot be decoded: nothing is concluded from that, and it is named."""

from typing import Any

import pytest

from kubeslurm.api import names
from kubeslurm.engine.key import Key
from kubeslurm.kube.unreadable import Unreadable
from kubeslurm.reconcile.controller.registration import REGISTRATION
from tests.support.controlplane import ControlPlane, started

pytestmark = pytest.mark.looptime

STRANGE = {"controllerRef": {"name": "c"}, "replicas": "several"}


async def with_strange_nodeset(plane: ControlPlane, **spec: Any) -> ControlPlane:
    """A running cluster whose NodeSet a new operator process cannot read."""
    await plane.make_nodeset()
    running = await started(plane)
    await running.make("NodeSet", "gpu", "nodesets", spec=STRANGE | spec)
    await running.start()
    return running


async def test_the_configuration_stays_as_it_is_and_the_object_is_named(plane: ControlPlane) -> None:
    running = await with_strange_nodeset(plane)
    live = running.delivered_conf()
    await running.make_controller(extraConf="MaxJobCount=7")
    await running.connect()
    await running.turn(3)
    assert running.trials() == []
    assert running.delivered_conf() == live
    degraded = running.condition("Degraded")
    assert degraded["reason"] == "ObjectNotDecoded"
    assert "NodeSet ns/gpu cannot be decoded" in degraded["message"]
    await running.make_nodeset()
    await running.roll_out()
    assert "MaxJobCount=7" in running.slurm.read
    assert "PartitionName=gpu" in running.slurm.read
    assert running.condition("Degraded")["reason"] == "Healthy"


async def test_a_nodeset_that_cannot_be_decoded_holds_the_deletion_of_its_controller(plane: ControlPlane) -> None:
    running = await with_strange_nodeset(plane)
    await running.mark_deleted()
    await running.turn(2)
    assert names.FINALIZER in (running.find("controllers", "c") or {})["metadata"]["finalizers"]
    assert "NodeSet ns/gpu cannot be decoded" in running.condition("Progressing")["message"]
    await running.server.remove("gpu", "ns", "nodesets")
    await running.settle()
    await running.turn()
    assert names.FINALIZER not in (running.find("controllers", "c") or {"metadata": {}})["metadata"].get(
        "finalizers", []
    )


async def test_a_nodeset_whose_controller_cannot_be_told_counts_for_all_of_its_namespace(plane: ControlPlane) -> None:
    running = await with_strange_nodeset(plane, controllerRef="c")
    await running.turn(2)
    assert running.condition("Degraded")["reason"] == "ObjectNotDecoded"


async def test_a_nodeset_of_another_cluster_freezes_nothing(plane: ControlPlane) -> None:
    running = await started(plane)
    await running.make("NodeSet", "other", "nodesets", spec=STRANGE | {"controllerRef": {"name": "d"}})
    await running.turn(2)
    assert running.condition("Degraded")["reason"] == "Healthy"


async def test_controllers_of_the_namespace_look_again_when_an_object_cannot_be_decoded(plane: ControlPlane) -> None:
    assert REGISTRATION.of_unreadable is not None
    found = REGISTRATION.of_unreadable(plane.context, Unreadable("NodeSet", Key("ns", "gpu"), "1", "", "?"))
    assert list(found) == [Key("ns", "c")]
