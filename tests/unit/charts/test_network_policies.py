"""The chart's NetworkPolicies by the rules of Kubernetes: who may reach whom."""

from typing import Any

import pytest
from kubernetes_validate import validate  # type: ignore[import-untyped]

from kubeslurm.api import labels, names
from kubeslurm.api.meta import Tree
from tests.unit.charts.test_slurm_chart import render

VALUES: Tree = {
    "networkPolicy": {"enabled": True},
    "accounting": {"enabled": True, "mariadb": {"enabled": True}},
}
# Pods by a name for this test: their namespace and labels, as the operator and the charts give them.
PODS: dict[str, tuple[str, dict[str, str]]] = {
    "slurmctld": ("slurm", labels.slurmctld("slurm")),
    "slurmdbd": ("slurm", labels.slurmdbd("slurm")),
    "slurmrestd": ("slurm", labels.slurmrestd("slurm")),
    "worker": ("slurm", labels.worker("slurm-worker-gpu", "slurm")),
    "login": ("slurm", labels.login("slurm-login-main")),
    "operator": ("slinky", {names.LABEL_NAME: "slurm-operator", names.LABEL_INSTANCE: "slurm-operator"}),
    "neighbour": ("slurm", {names.LABEL_NAME: "web"}),
    "stranger": ("other", labels.login("slurm-login-main")),
    "impostor": ("other", {names.LABEL_NAME: "slurm-operator"}),
}
MAY_REACH = {
    "slurmctld": {"slurmctld", "slurmdbd", "slurmrestd", "worker", "login"},
    "slurmdbd": {"slurmctld", "slurmdbd", "slurmrestd", "worker", "login"},
    "slurmrestd": {"operator"},
    "database": {"slurmdbd"},
}
PORTS = {"slurmctld": names.SLURMCTLD, "slurmdbd": names.SLURMDBD, "slurmrestd": names.SLURMRESTD, "database": "mysql"}


def matches(selector: Tree, found: dict[str, str]) -> bool:
    """Whether a label selector selects; an empty one selects everything."""
    wanted = selector.get("matchLabels") or {}
    for each in selector.get("matchExpressions") or ():
        assert each["operator"] == "In"
        if found.get(each["key"]) not in each["values"]:
            return False
    return all(found.get(key) == value for key, value in wanted.items())


def is_peer(peer: Tree, home: str, namespace: str, found: dict[str, str]) -> bool:
    """Whether a peer of a policy in `home` is a pod: without a namespaceSelector only one of the same namespace."""
    if "ipBlock" in peer:
        return False
    if "namespaceSelector" in peer:
        place = matches(peer["namespaceSelector"], {"kubernetes.io/metadata.name": namespace})
    else:
        place = namespace == home
    return place and matches(peer.get("podSelector") or {}, found)


def admitted(policies: list[Any], target: dict[str, str], port: str) -> set[str]:
    """The pods that may reach a port of one in the namespace `slurm`; all, if no policy selects it."""
    selecting = [each["spec"] for each in policies if matches(each["spec"]["podSelector"], target)]
    if not selecting:
        return set(PODS)
    peers = [
        peer
        for spec in selecting
        for rule in spec["ingress"]
        if port in [each["port"] for each in rule["ports"]]
        for peer in rule["from"]
    ]
    return {name for name, pod in PODS.items() if any(is_peer(peer, "slurm", *pod) for peer in peers)}


def policies(values: Tree) -> tuple[list[Any], dict[str, str]]:
    """The NetworkPolicies, and the labels of the database's pods."""
    objects = render(values)
    database = objects["StatefulSet", "slurm-mariadb"]["spec"]["template"]["metadata"]["labels"]
    return [tree for (kind, _), tree in objects.items() if kind == "NetworkPolicy"], database


@pytest.mark.parametrize("target", MAY_REACH)
def test_each_daemon_is_reached_only_by_those_who_need_it(target: str) -> None:
    found, database = policies(VALUES)
    pod = database if target == "database" else PODS[target][1]
    assert admitted(found, pod, PORTS[target]) == MAY_REACH[target]
    assert admitted(found, pod, "another") == set()


def test_workers_and_login_pods_stay_open_for_srun_and_ssh() -> None:
    found, _ = policies(VALUES)
    for target in ("worker", "login"):
        assert admitted(found, PODS[target][1], "any") == set(PODS)


def test_values_name_further_peers() -> None:
    portal = {"podSelector": {"matchLabels": {names.LABEL_NAME: "web"}}}
    given = VALUES | {"networkPolicy": {"enabled": True, "slurmrestd": {"from": [portal]}}}
    found, _ = policies(given)
    assert admitted(found, PODS["slurmrestd"][1], names.SLURMRESTD) == {"operator", "neighbour"}


def test_they_are_valid_and_made_on_request_only() -> None:
    found, _ = policies(VALUES)
    assert len(found) == len(MAY_REACH)
    for each in found:
        validate(each, "1.29")
    assert policies(VALUES | {"networkPolicy": {"enabled": False}})[0] == []
    assert not any(kind == "NetworkPolicy" for kind, _ in render())
    assert not any(kind == "NetworkPolicy" for kind, _ in render({"networkPolicy": None}))


def test_a_section_that_is_null_names_no_further_peers() -> None:
    nulls = dict.fromkeys(("operatorNamespace", "slurmctld", "slurmdbd", "slurmrestd", "database"))
    assert policies(VALUES | {"networkPolicy": {"enabled": True, **nulls}}) == policies(VALUES)
