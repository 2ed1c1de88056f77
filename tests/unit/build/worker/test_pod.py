"""The worker pod, beyond its golden files."""

from typing import Any

import pytest

from kubeslurm.api import slots
from kubeslurm.api.slinky.fragments import SecretKeySelector
from kubeslurm.api.slinky.nodeset import NodeSet, Ssh, WorkerTemplate
from kubeslurm.build.worker import pod as worker
from tests.support.workers import controller, nodeset


def template(**spec: Any) -> WorkerTemplate:
    return WorkerTemplate(spec=spec)


def slurmd_of(given: NodeSet) -> dict[str, Any]:
    pod = worker.pod(controller(), given, slots.for_ordinal(given, 0), "hash", {}, "cluster.local")
    found: dict[str, Any] = pod["spec"]["containers"][0]
    return found


def test_an_unprivileged_worker_is_possible() -> None:
    found = slurmd_of(nodeset(slurmd={"securityContext": {"privileged": False}}))
    assert found["securityContext"]["privileged"] is False


def test_both_names_of_the_topology_are_set() -> None:
    variables = {each["name"] for each in slurmd_of(nodeset())["env"]}
    assert {"SLINKY_TOPOLOGY", "POD_TOPOLOGY", "POD_CPUS", "POD_MEMORY"} <= variables


def test_the_limits_of_the_container_win_over_those_of_the_pod() -> None:
    given = nodeset(
        slurmd={"resources": {"limits": {"cpu": 2}}},
        template=template(resources={"limits": {"cpu": 8, "memory": "1Gi"}}),
    )
    values = {each["name"]: each.get("value") for each in slurmd_of(given)["env"]}
    assert (values["POD_CPUS"], values["POD_MEMORY"]) == ("2", "1024")


def node_name(given: NodeSet, slot: slots.Slot) -> Any:
    """Where slurmd is told the name of its node; None when it takes the host name."""
    pod = worker.pod(controller(), given, slot, "hash", {}, "cluster.local")
    variables = {each["name"]: each for each in pod["spec"]["containers"][0]["env"]}
    found = variables.get("SLURMD_NODENAME", {})
    return found.get("value") or found.get("valueFrom")


def test_a_worker_on_the_host_network_is_told_its_name_because_it_sees_the_machines() -> None:
    slot = slots.Slot(node="node-7.example.org", hostname="renamed-7")
    daemon = nodeset(scalingMode="DaemonSet", template=template(hostNetwork=True))
    assert node_name(daemon, slot) == "renamed-7"
    ordinals = nodeset(template=template(hostNetwork=True))
    assert node_name(ordinals, slots.for_ordinal(ordinals, 0)) == {"fieldRef": {"fieldPath": "spec.nodeName"}}


@pytest.mark.parametrize("field", [{"setHostnameAsFQDN": True}, {"hostnameOverride": "other"}], ids=str)
def test_a_worker_with_another_host_name_is_told_its_name(field: dict[str, Any]) -> None:
    given = nodeset(template=template(**field))
    assert node_name(given, slots.for_ordinal(given, 0)) == "gpu-0"


def test_a_worker_whose_host_name_is_its_name_is_told_nothing() -> None:
    daemon = nodeset(scalingMode="DaemonSet")
    assert node_name(daemon, slots.Slot(node="node-7", hostname="node-7")) is None
    assert node_name(nodeset(), slots.for_ordinal(nodeset(), 0)) is None


def test_ssh_without_users_is_off() -> None:
    off = nodeset(ssh=Ssh(enabled=False, sssdConfRef=SecretKeySelector(name="s", key="k")))
    assert [port["name"] for port in slurmd_of(off)["ports"]] == ["slurmd"]
