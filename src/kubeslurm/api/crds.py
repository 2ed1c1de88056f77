"""The CustomResourceDefinitions, made from the types."""

from typing import Any

import yaml

from kubeslurm.api.kinds import SLURM_KINDS, Kind
from kubeslurm.api.meta import Tree, tree_of_rules
from kubeslurm.api.resource import Column
from kubeslurm.api.schema import schema_of

CATEGORY = "slurm"


def crds() -> dict[str, Tree]:
    """All CustomResourceDefinitions by name."""
    return {made["metadata"]["name"]: made for made in map(crd, SLURM_KINDS)}


def crd(kind: Kind[Any]) -> Tree:
    """The CustomResourceDefinition of one kind."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{kind.plural}.{kind.group}",
            # Without the CRDs every cluster is deleted: uninstalling the chart must not end running jobs.
            "annotations": {"helm.sh/resource-policy": "keep"},
        },
        "spec": {
            "group": kind.group,
            "names": {
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": kind.plural,
                "singular": kind.kind.lower(),
                "shortNames": list(kind.type.definition.short_names),
                "categories": [CATEGORY],
            },
            "scope": "Namespaced",
            "versions": [_version(kind)],
        },
    }


def _version(kind: Kind[Any]) -> Tree:
    schema, definition = schema_of(kind.type), kind.type.definition
    rules = {"x-kubernetes-validations": tree_of_rules(definition.rules)} if definition.rules else {}
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    return {
        "name": kind.version,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [_column(column) for column in definition.columns],
        "schema": {"openAPIV3Schema": schema | rules},
        "subresources": {"status": {}}
        | ({"scale": scale | {"labelSelectorPath": ".status.selector"}} if definition.scales else {}),
    }


def _column(column: Column) -> Tree:
    priority = {"priority": column.priority} if column.priority else {}
    return {"name": column.name, "type": column.type, "jsonPath": column.path} | priority


def to_yaml(tree: Tree) -> str:
    """A tree as YAML, in the order given."""
    return yaml.dump(tree, Dumper=_Plain, sort_keys=False, width=120, allow_unicode=True)


class _Plain(yaml.SafeDumper):
    """YAML without anchors: a repeated part is written out."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True
