"""The worker pod, beyond its golden files."""

from typing import Any

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


def test_ssh_without_users_is_off() -> None:
    off = nodeset(ssh=Ssh(enabled=False, sssdConfRef=SecretKeySelector(name="s", key="k")))
    assert [port["name"] for port in slurmd_of(off)["ports"]] == ["slurmd"]
