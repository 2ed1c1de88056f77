"""The CustomResourceDefinitions, made from the types."""

from typing import Any

import msgspec
import yaml

from kubeslurm.api import kinds
from kubeslurm.api.kinds import Kind
from kubeslurm.api.meta import Rule, Tree, tree_of_rules
from kubeslurm.api.schema import schema_of

CATEGORY = "slurm"


class Column(msgspec.Struct, frozen=True):
    """A column of `kubectl get`; priority 1 shows only with `-o wide`."""

    name: str
    path: str
    type: str = "integer"
    priority: int = 0


class Definition(msgspec.Struct, frozen=True):
    """What a CRD says beyond its schema."""

    kind: Kind[Any]
    short_names: tuple[str, ...]
    columns: tuple[Column, ...]
    scales: bool = False
    rules: tuple[Rule, ...] = ()


def _ready(part: str) -> str:
    return f'.status.conditions[?(@.type=="Ready")].{part}'


READY = Column("READY", _ready("status"), "string")
REASON = Column("REASON", _ready("reason"), "string")
MESSAGE = Column("MESSAGE", _ready("message"), "string", priority=1)
SLURM = Column("SLURM", ".status.slurmVersion", "string")
CLUSTER = Column("CLUSTER", ".spec.controllerRef.name", "string", priority=1)
AGE = Column("AGE", ".metadata.creationTimestamp", "date")


def _name(self: str) -> str:
    """CEL: the cluster's name, empty when it is made from namespace and name."""
    return f"(has({self}.spec) && has({self}.spec.clusterName) ? {self}.spec.clusterName : '')"


def _spelled_out(plain: str, given: str) -> str:
    """CEL: whether the second cluster says the name that the first goes by.

    CEL does not see the namespace, so only the end of `<namespace>_<name>` is compared; admission compares the rest.
    """
    return f"({_name(plain)} == '' && {_name(given)}.endsWith('_' + self.metadata.name))"


_CLUSTER_NAME_RULE = Rule(
    message="clusterName is immutable: state and accounting are filed under it; create a new Controller instead",
    rule=" || ".join(
        [f"{_name('self')} == {_name('oldSelf')}", _spelled_out("oldSelf", "self"), _spelled_out("self", "oldSelf")]
    ),
    field=".spec.clusterName",
)

DEFINITIONS = (
    Definition(
        kinds.ACCOUNTING,
        short_names=("slurmdbd",),
        columns=(READY, REASON, SLURM, MESSAGE, AGE),
    ),
    Definition(
        kinds.CONTROLLER,
        short_names=("slurmctld",),
        columns=(READY, REASON, SLURM, Column("NODES", ".status.nodes"), MESSAGE, AGE),
        rules=(_CLUSTER_NAME_RULE,),
    ),
    Definition(
        kinds.LOGINSET,
        short_names=("loginsets", "lss", "sackd"),
        columns=(
            Column("REPLICAS", ".status.replicas"),
            Column("READY", ".status.readyReplicas"),
            REASON,
            CLUSTER,
            MESSAGE,
            AGE,
        ),
        scales=True,
    ),
    Definition(
        kinds.NODESET,
        short_names=("nodesets", "nss", "slurmd"),
        columns=(
            Column("DESIRED", ".status.desired"),
            Column("REPLICAS", ".status.replicas"),
            Column("UPDATED", ".status.updatedReplicas"),
            Column("READY", ".status.readyReplicas"),
            REASON,
            Column("IDLE", ".status.slurmIdle", priority=1),
            Column("ALLOCATED", ".status.slurmAllocated", priority=1),
            Column("DOWN", ".status.slurmDown", priority=1),
            Column("DRAIN", ".status.slurmDrain", priority=1),
            CLUSTER,
            MESSAGE,
            AGE,
        ),
        scales=True,
    ),
    Definition(
        kinds.RESTAPI,
        short_names=("slurmrestd",),
        columns=(
            Column("REPLICAS", ".status.replicas"),
            Column("READY", ".status.readyReplicas"),
            REASON,
            SLURM,
            CLUSTER,
            MESSAGE,
            AGE,
        ),
    ),
    Definition(
        kinds.TOKEN,
        short_names=("tokens", "jwt"),
        columns=(
            Column("USER", ".spec.username", "string"),
            Column("IAT", ".status.issuedAt", "date"),
            Column("EXPIRES", ".status.expiresAt", "string", priority=1),
            READY,
            REASON,
            MESSAGE,
            AGE,
        ),
    ),
)


def crd(definition: Definition) -> Tree:
    """One CustomResourceDefinition."""
    kind = definition.kind
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{kind.plural}.{kind.group}",
            # Without the CRDs every cluster goes: an uninstalled chart must not take running jobs with it.
            "annotations": {"helm.sh/resource-policy": "keep"},
        },
        "spec": {
            "group": kind.group,
            "names": {
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": kind.plural,
                "singular": kind.kind.lower(),
                "shortNames": list(definition.short_names),
                "categories": [CATEGORY],
            },
            "scope": "Namespaced",
            "versions": [_version(definition)],
        },
    }


def _version(definition: Definition) -> Tree:
    schema = schema_of(definition.kind.type)
    rules = {"x-kubernetes-validations": tree_of_rules(definition.rules)} if definition.rules else {}
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    return {
        "name": definition.kind.version,
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


def crds() -> dict[str, Tree]:
    """All CustomResourceDefinitions by name."""
    return {made["metadata"]["name"]: made for made in map(crd, DEFINITIONS)}


def to_yaml(tree: Tree) -> str:
    """A tree as YAML, in the order given."""
    return yaml.dump(tree, Dumper=_Plain, sort_keys=False, width=120, allow_unicode=True)


class _Plain(yaml.SafeDumper):
    """YAML without anchors: repeated pieces are written out."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True
