"""The CustomResourceDefinitions: equal to the types, structural, and fully described."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest

from kubeslurm.api.crds import crds, to_yaml
from kubeslurm.api.meta import Tree

CHART = Path(__file__).parents[3] / "charts" / "slurm-operator-crds" / "templates"

KEYWORDS = {
    "additionalProperties",
    "anyOf",
    "default",
    "description",
    "enum",
    "format",
    "items",
    "maxLength",
    "maximum",
    "minLength",
    "minimum",
    "nullable",
    "pattern",
    "properties",
    "required",
    "type",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
}

each_crd = pytest.mark.parametrize("crd", crds().values(), ids=lambda crd: str(crd["metadata"]["name"]))


def schema_of(crd: Tree) -> Tree:
    schema: Tree = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def nodes(schema: Tree, path: str = "") -> Iterator[tuple[str, Tree]]:
    """Every schema inside a schema, by path."""
    yield path, schema
    for name, field in schema.get("properties", {}).items():
        yield from nodes(field, f"{path}.{name}")
    for child in ("items", "additionalProperties"):
        if child in schema:
            yield from nodes(schema[child], f"{path}[]")


def test_the_chart_holds_what_the_types_say() -> None:
    committed = {path.name: path.read_text(encoding="utf-8") for path in CHART.iterdir()}
    assert committed == {f"{name}.yaml": to_yaml(crd) for name, crd in crds().items()}, (
        "run `kubeslurm crds --output charts/slurm-operator-crds/templates`"
    )


@each_crd
def test_helm_finds_nothing_to_replace(crd: Tree) -> None:
    assert "{{" not in to_yaml(crd)


@each_crd
def test_kubernetes_knows_every_field_of_the_definition(crd: Tree) -> None:
    kubernetes_validate.validate(crd, "1.37", strict=True)


@each_crd
def test_every_field_is_described(crd: Tree) -> None:
    silent = [
        path
        for path, node in nodes(schema_of(crd))
        if not path.endswith(("[]", ".metadata")) and not node.get("description")
    ]
    assert silent == []


@each_crd
def test_schemas_are_structural(crd: Tree) -> None:
    for path, node in nodes(schema_of(crd)):
        assert not node.keys() - KEYWORDS, path
        assert "type" in node or "x-kubernetes-int-or-string" in node, path


@each_crd
def test_lists_and_maps_say_what_they_hold(crd: Tree) -> None:
    for path, node in nodes(schema_of(crd)):
        if node.get("type") == "array":
            assert "items" in node, path
        if node.get("type") == "object" and path != ".metadata":
            assert {"properties", "additionalProperties", "x-kubernetes-preserve-unknown-fields"} & node.keys(), path


@each_crd
def test_columns_show_fields_that_exist(crd: Tree) -> None:
    known = {path for path, _ in nodes(schema_of(crd))} | {".metadata.creationTimestamp"}
    for column in crd["spec"]["versions"][0]["additionalPrinterColumns"]:
        path = column["jsonPath"].replace('[?(@.type=="Ready")]', "[]")
        assert path in known, column["name"]


@each_crd
def test_one_category_shows_the_whole_cluster(crd: Tree) -> None:
    assert crd["spec"]["names"]["categories"] == ["slurm"]


@each_crd
def test_status_tells_conditions_and_the_generation_it_is_about(crd: Tree) -> None:
    status = schema_of(crd)["properties"]["status"]["properties"]
    assert status["conditions"]["x-kubernetes-list-map-keys"] == ["type"]
    assert status["observedGeneration"]["format"] == "int64"


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("accountings", ["slurmdbd"]),
        ("controllers", ["slurmctld"]),
        ("loginsets", ["loginsets", "lss", "sackd"]),
        ("nodesets", ["nodesets", "nss", "slurmd"]),
        ("restapis", ["slurmrestd"]),
        ("tokens", ["tokens", "jwt"]),
    ],
)
def test_short_names_are_the_known_ones(name: str, short: list[str]) -> None:
    assert crds()[f"{name}.slinky.slurm.net"]["spec"]["names"]["shortNames"] == short


@pytest.mark.parametrize("name", ["nodesets", "loginsets"])
def test_autoscalers_can_scale(name: str) -> None:
    version: Any = crds()[f"{name}.slinky.slurm.net"]["spec"]["versions"][0]
    assert version["subresources"]["scale"] == {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }


def test_defaults_are_those_that_users_know() -> None:
    found = {
        f"{crd['spec']['names']['kind']}{path}": node["default"]
        for crd in crds().values()
        for path, node in nodes(schema_of(crd))
        if "default" in node and not path.endswith(".name")
    }
    assert found == {
        "Accounting.spec.external": False,
        "Accounting.spec.storageConfig.database": "slurm_acct_db",
        "Accounting.spec.storageConfig.port": 3306,
        "Controller.spec.external": False,
        "Controller.spec.ha.backups": 1,
        "Controller.spec.ha.enabled": False,
        "Controller.spec.inplaceReconfigure": False,
        "Controller.spec.metrics.enabled": False,
        "Controller.spec.metrics.serviceMonitor.enabled": False,
        "Controller.spec.persistence.enabled": True,
        "LoginSet.spec.replicas": 1,
        "NodeSet.spec.drain.policy": "Wait",
        "NodeSet.spec.ordinalPadding": 0,
        "NodeSet.spec.oversubscribeNode": False,
        "NodeSet.spec.partition.enabled": False,
        "NodeSet.spec.persistentVolumeClaimRetentionPolicy.whenDeleted": "Retain",
        "NodeSet.spec.persistentVolumeClaimRetentionPolicy.whenScaled": "Retain",
        "NodeSet.spec.pinToNode": False,
        "NodeSet.spec.pruneSlurmNodeRecords": "Never",
        "NodeSet.spec.replicas": 1,
        "NodeSet.spec.revisionHistoryLimit": 0,
        "NodeSet.spec.scalingMode": "StatefulSet",
        "NodeSet.spec.ssh.enabled": False,
        "NodeSet.spec.updateStrategy.rollingUpdate.maxUnavailable": "25%",
        "NodeSet.spec.updateStrategy.scheduledUpdate.duration": "30m",
        "NodeSet.spec.updateStrategy.type": "RollingUpdate",
        "NodeSet.spec.workloadDisruptionProtection": True,
        "RestApi.spec.replicas": 1,
        "Token.spec.refresh": True,
    }
