"""The examples: every object in them, and every object that the chart makes of their values, is valid to the letter."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from kubeslurm.api.crds import crds
from kubeslurm.api.meta import Tree
from tests.support.manifests import decoded

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
HELM = Path(sys.executable).with_name("helm")
SCHEMAS = {
    crd["spec"]["names"]["kind"]: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for crd in crds().values()
}


def strict(schema: Any) -> Any:
    """The schema as JSON schema knows it, by which fields that nobody knows are mistakes, as for `kubectl apply`."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: strict(each) for name, each in schema.items()}
    if schema.get("nullable") is True:
        inner["type"] = [schema["type"], "null"]
    is_open = "properties" not in schema or schema.get("x-kubernetes-preserve-unknown-fields", False)
    return inner if is_open else {"additionalProperties": False} | inner


def check(tree: Tree) -> None:
    tree["metadata"].setdefault("namespace", "slurm")
    if tree["kind"] not in SCHEMAS:
        kubernetes_validate.validate(tree, "1.29", strict=True)
        return
    schema = SCHEMAS[tree["kind"]]
    jsonschema.validate(tree["spec"], strict(schema["properties"]["spec"]))
    decoded(tree)


def manifests(path: Path) -> Iterator[Tree]:
    yield from (tree for tree in yaml.safe_load_all(path.read_text()) if tree)


def named(paths: Iterator[Path]) -> dict[str, Path]:
    return {str(path.relative_to(EXAMPLES)): path for path in sorted(paths)}


FILES = named(path for path in EXAMPLES.rglob("*.yaml") if path.name != "values.yaml")
VALUES = named(EXAMPLES.rglob("values.yaml"))


@pytest.mark.parametrize("name", FILES)
def test_every_object_of_an_example_is_valid(name: str) -> None:
    objects = list(manifests(FILES[name]))
    assert objects
    for tree in objects:
        check(tree)


@pytest.mark.parametrize("name", VALUES)
def test_the_chart_makes_valid_objects_of_an_examples_values(name: str) -> None:
    chart = str(ROOT / "charts" / "slurm")
    argv = [str(HELM), "template", "slurm", chart, "--namespace=slurm", f"--values={VALUES[name]}"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    objects = [tree for tree in yaml.safe_load_all(done.stdout) if tree]
    for tree in objects:
        check(tree)
    wanted = yaml.safe_load(VALUES[name].read_text())
    kinds = [tree["kind"] for tree in objects]
    assert kinds.count("NodeSet") == len(wanted["nodesets"])
    assert kinds.count("LoginSet") == len(wanted.get("loginsets", {}))
    assert kinds.count("Accounting") == int(wanted.get("accounting", {}).get("enabled", False))


def test_the_smallest_example_is_whole() -> None:
    objects = {tree["kind"]: tree for tree in manifests(EXAMPLES / "smallest.yaml")}
    assert set(objects) == {"Controller", "RestApi", "NodeSet"}, "the operator makes the keys"
    for kind in ("RestApi", "NodeSet"):
        assert objects[kind]["spec"]["controllerRef"]["name"] == objects["Controller"]["metadata"]["name"]


def test_a_field_that_nobody_knows_would_be_found() -> None:
    tree = next(tree for tree in manifests(EXAMPLES / "smallest.yaml") if tree["kind"] == "NodeSet")
    tree["spec"]["replica"] = 3
    with pytest.raises(jsonschema.ValidationError, match="'replica' was unexpected"):
        check(tree)
