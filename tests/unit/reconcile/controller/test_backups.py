"""A slurmctld with backups that another operator has started."""

import pytest

from tests.support.controlplane import ControlPlane

pytestmark = pytest.mark.looptime

HA = {"enabled": True, "backups": 1}
CLAIM = {"enabled": True, "existingClaim": "shared"}


async def take_over(plane: ControlPlane) -> None:
    template = {"metadata": {"annotations": {}}, "spec": {"containers": []}}
    spec = {"replicas": 2, "serviceName": "c-controller-internal", "template": template}
    metadata = {"name": "c-controller", "namespace": "ns"}
    tree = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec}
    await plane.server.put(tree, "statefulsets")
    text = "ClusterName=ns_c\nSlurmctldHost=c-controller-0\nSlurmctldHost=c-controller-1\n"
    await plane.plain("ConfigMap", "c-config", "configmaps", data={"slurm.conf": text})
    await plane.make_controller(ha=HA, persistence=CLAIM)
    await plane.run_slurmctld()
    await plane.connect()


async def test_backups_are_neither_ended_nor_given_a_configuration_without_them(plane: ControlPlane) -> None:
    await take_over(plane)
    before = plane.find("statefulsets", "c-controller"), plane.delivered_conf()
    await plane.turn(4)
    assert (plane.find("statefulsets", "c-controller"), plane.delivered_conf()) == before
    assert plane.trials() == []
    assert plane.slurm.reconfigured == 0
    found = plane.condition("Degraded")
    assert found["reason"] == "NotSupported"
    assert "1 backups" in found["message"]
    assert plane.condition("Ready")["status"] == "True"


async def test_backups_go_when_the_user_wants_none(plane: ControlPlane) -> None:
    await take_over(plane)
    await plane.turn()
    await plane.make_controller(persistence=CLAIM)
    await plane.turn()
    await plane.end_trial()
    await plane.turn()
    found = plane.find("statefulsets", "c-controller") or {}
    assert found["spec"]["replicas"] == 1
    assert "c-controller-1" not in plane.delivered_conf()
