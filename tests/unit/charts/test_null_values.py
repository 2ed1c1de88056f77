"""A values file may set anything to null, which takes the default away: the charts still make valid objects."""

import json
import subprocess
import sys
from collections.abc import Iterator
from copy import deepcopy
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from kubeslurm.operator.controllers import SETTINGS
from kubeslurm.operator.settings.load import load
from kubeslurm.operator.settings.model import WebhookSettings
from tests.support.manifests import decoded

CHARTS = Path(__file__).parents[3] / "charts"
HELM = Path(sys.executable).with_name("helm")
Tree = dict[str, Any]
Place = tuple[str, ...]


def values_of(chart: str) -> Tree:
    tree: Tree = yaml.safe_load((CHARTS / chart / "values.yaml").read_text())
    return tree


def slurm_values() -> Tree:
    """Everything on, and a NodeSet and a LoginSet that repeat every default."""
    tree = values_of("slurm")
    for place in (
        "priorityClass.enabled", "priorityClass.create", "jwksKeys.enabled", "networkPolicy.enabled",
        "controller.metrics.enabled", "restapi.pdb.enabled", "accounting.enabled", "accounting.mariadb.enabled",
        "nodesetDefaults.partition.enabled", "nodesetDefaults.ssh.enabled", "partitions.all.enabled",
        "vendor.nvidia.dcgm.enabled",
    ):  # fmt: skip
        put(tree, tuple(place.split(".")), True)
    put(tree, ("nodesetDefaults", "slurmd", "resources"), {"limits": {"nvidia.com/gpu": 8}})
    tree["nodesets"] = {"gpu": deepcopy(tree["nodesetDefaults"]), "cpu": None}
    tree["loginsets"] = {"main": deepcopy(tree["loginsetDefaults"]), "second": None}
    return tree


def operator_values() -> Tree:
    tree = values_of("slurm-operator")
    for part in ("operator", "webhook"):
        tree[part] |= {"replicas": 2, "pdb": tree[part]["pdb"] | {"enabled": True}, "metricsPort": 9000}
    tree["operator"] |= {"profile": True, "namespaces": "team-a"}
    tree["webhook"] |= {"podsBinding": True, "namespaces": "team-a"}
    tree["certManager"]["enabled"] = True
    return tree


def put(tree: Tree, place: Place, value: Any) -> None:
    for name in place[:-1]:
        tree = tree[name]
    tree[place[-1]] = value


# What cannot do without a value: the chart, or Kubernetes, says so.
NEEDED = {
    ("partitions", "all", "nodesets"),
    *((part, "podSecurityContext", "seccompProfile", "type") for part in ("operator", "webhook")),
}
VALUES = {"slurm": slurm_values(), "slurm-operator": operator_values()}


def units(tree: Tree, above: Place = ()) -> Iterator[list[Place]]:
    """What is set to null together: a section, a switch, or all else that a section holds."""
    maps = {name for name, value in tree.items() if isinstance(value, dict)} | ({"enabled"} & set(tree))
    yield [(*above, name) for name in tree if name not in maps and (*above, name) not in NEEDED]
    for name in maps:
        yield [(*above, name)]
        if isinstance(tree[name], dict):
            yield from units(tree[name], (*above, name))


def rounds(tree: Tree) -> list[list[list[Place]]]:
    """All units, one of every section in each round: sections do not look into each other, and helm takes time."""
    sections: dict[str, list[list[Place]]] = {}
    for unit in filter(None, units(tree)):
        sections.setdefault(unit[0][0], []).append(unit)
    return [[unit for unit in each if unit] for each in zip_longest(*sections.values(), fillvalue=[])]


def render(chart: str, nulls: list[Place]) -> "subprocess.CompletedProcess[str]":
    tree = deepcopy(VALUES[chart])
    for place in nulls:
        put(tree, place, None)
    argv = [str(HELM), "template", chart, str(CHARTS / chart), "--namespace=slurm", "--values=-"]
    return subprocess.run(argv, input=json.dumps(tree), capture_output=True, text=True, check=False)


def without_nulls(tree: Any) -> Any:
    """As the API server takes it: a null is a field that is not there."""
    if isinstance(tree, dict):
        return {key: without_nulls(value) for key, value in tree.items() if value is not None}
    return [without_nulls(each) for each in tree] if isinstance(tree, list) else tree


def check(tree: Tree) -> None:
    if "slinky" in tree["apiVersion"]:
        decoded(tree)
    elif "cert-manager" not in tree["apiVersion"]:
        kubernetes_validate.validate(tree, "1.29", strict=True)
    if tree["kind"] == "Deployment":
        (container,) = tree["spec"]["template"]["spec"]["containers"]
        load(WebhookSettings if container["name"] == "webhook" else SETTINGS, container["args"], {})


def fault(chart: str, nulls: list[Place]) -> str:
    """What is wrong with what the chart makes of these values; empty when nothing is."""
    done = render(chart, nulls)
    if done.returncode:
        return done.stderr
    if "%!" in done.stdout or "<nil>" in done.stdout:
        return next(line for line in done.stdout.splitlines() if "%!" in line or "<nil>" in line)
    try:
        for tree in yaml.load_all(done.stdout, yaml.CSafeLoader):
            if tree:
                check(without_nulls(tree))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.mark.parametrize("chart", VALUES)
def test_any_value_may_be_null(chart: str) -> None:
    doubtful = [each for each in rounds(VALUES[chart]) if fault(chart, list(chain(*each)))]
    faults = [f"{unit}: {found}" for each in doubtful for unit in each if (found := fault(chart, unit))]
    assert not faults, "\n".join(faults)
    assert not doubtful
