"""What each part of the product may do in a cluster; the chart's roles are made from this and nothing else.

With selected namespaces the object rules become Roles there, and only Nodes are read cluster-wide.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from kubeslurm.api import kinds
from kubeslurm.api.kinds import Kind
from kubeslurm.operator.other_operators import LEASE_NAME

OPERATOR_NAME = '{{ include "slurm-operator.fullname" . }}'
WEBHOOK_NAME = '{{ include "slurm-operator.webhook.fullname" . }}'
CERTIFICATES_NAME = '{{ include "slurm-operator.certificates.secret" . }}'


class Rule(msgspec.Struct, frozen=True):
    """Verbs on one resource; with names, only on those objects."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()


def on(kind: Kind[Any], *verbs: str, sub: str = "", names: tuple[str, ...] = ()) -> Rule:
    """Verbs on a kind, or on a subresource of it."""
    return Rule(kind.group, f"{kind.plural}/{sub}" if sub else kind.plural, verbs, names)


def sees(*seen: Kind[Any]) -> tuple[Rule, ...]:
    """Kinds that are watched."""
    return tuple(on(kind, "list", "watch") for kind in seen)


def keeps(*kept: Kind[Any]) -> tuple[Rule, ...]:
    """Kinds that are watched and applied; a take-over reads the object whole first."""
    return tuple(on(kind, "get", "list", "watch", "create", "patch") for kind in kept)


def serves(kind: Kind[Any]) -> tuple[Rule, ...]:
    """The kind a controller is for: finalizers by patch, its status, and being named as an owner that blocks."""
    return (
        on(kind, "get", "list", "watch", "patch"),
        on(kind, "patch", sub="status"),
        on(kind, "update", sub="finalizers"),
    )


NEEDS: Mapping[str, tuple[Rule, ...]] = {
    "accounting": (
        *serves(kinds.ACCOUNTING),
        *sees(kinds.CONFIGMAP, kinds.CONTROLLER, kinds.NODESET, kinds.POD),
        *keeps(kinds.SECRET, kinds.SERVICE, kinds.STATEFULSET),
        on(kinds.POD, "get", sub="log"),
    ),
    "controller": (
        *serves(kinds.CONTROLLER),
        *sees(kinds.ACCOUNTING, kinds.NODESET, kinds.SECRET),
        *keeps(kinds.CONFIGMAP, kinds.SERVICE, kinds.STATEFULSET),
        on(kinds.CONFIGMAP, "delete"),
        on(kinds.POD, "list", "watch", "create", "patch", "delete"),
        on(kinds.SERVICE_MONITOR, "get", "create", "patch", "delete"),
    ),
    "loginset": (
        *serves(kinds.LOGINSET),
        *sees(kinds.CONTROLLER, kinds.POD),
        *keeps(kinds.CONFIGMAP, kinds.DEPLOYMENT, kinds.SECRET, kinds.SERVICE),
        on(kinds.POD, "get", sub="log"),
    ),
    "restapi": (
        *serves(kinds.RESTAPI),
        *sees(kinds.CONTROLLER, kinds.NODESET, kinds.SECRET, kinds.POD),
        *keeps(kinds.DEPLOYMENT, kinds.SERVICE),
    ),
    # An immutable Secret, of a token that is not refreshed, can only be replaced by deleting it.
    "token": (*serves(kinds.TOKEN), *keeps(kinds.SECRET), on(kinds.SECRET, "delete")),
    "slurm": (*sees(kinds.CONTROLLER, kinds.NODESET, kinds.RESTAPI, kinds.POD), *keeps(kinds.SECRET)),
    "nodeset": (
        *serves(kinds.NODESET),
        *sees(kinds.CONTROLLER, kinds.SECRET, kinds.NODE),
        *keeps(kinds.CONFIGMAP, kinds.POD_DISRUPTION_BUDGET, kinds.SERVICE),
        on(kinds.POD, "get", "list", "watch", "create", "patch", "delete"),
        on(kinds.POD, "patch", sub="status"),
        on(kinds.CONTROLLER_REVISION, "list", "watch", "create", "patch", "delete"),
        on(kinds.PERSISTENT_VOLUME_CLAIM, "create", "patch"),
    ),
    "events": (on(kinds.EVENT, "create", "patch"),),
}
# In its own namespace: the Lease, and before the release is removed, stopping the Deployment.
OWN = (
    on(kinds.LEASE, "create"),
    on(kinds.LEASE, "get", "update", names=(LEASE_NAME,)),
    on(kinds.DEPLOYMENT, "get", "patch", names=(OPERATOR_NAME,)),
)
RIVALS = (on(kinds.LEASE, "list", "watch", names=(LEASE_NAME,)),)
# Only where Kubernetes nodes shall show what was drained in Slurm.
MARKS = (on(kinds.NODE, "patch"), on(kinds.NODE, "patch", sub="status"))
METRICS = (
    Rule("authentication.k8s.io", "tokenreviews", ("create",)),
    Rule("authorization.k8s.io", "subjectaccessreviews", ("create",)),
)
WEBHOOK = (on(kinds.CONFIGMAP, "get"), on(kinds.PERSISTENT_VOLUME_CLAIM, "get"), on(kinds.NODESET, "list"))
WEBHOOK_TRUST = tuple(
    on(kind, "get", "patch", names=(WEBHOOK_NAME,)) for kind in (kinds.MUTATING_WEBHOOKS, kinds.VALIDATING_WEBHOOKS)
)
# A right to create cannot be tied to a name; it makes the Secret again when someone has deleted it.
WEBHOOK_SECRET = (on(kinds.SECRET, "create"), on(kinds.SECRET, "get", "patch", names=(CERTIFICATES_NAME,)))

CLUSTER_SCOPED = frozenset({kinds.NODE.plural})


def watched() -> tuple[Kind[Any], ...]:
    """The kinds that the operator holds in memory: those that some controller may watch."""
    seen = {(rule.group, rule.resource) for rules in NEEDS.values() for rule in rules if "watch" in rule.verbs}
    every = (kind for kind in vars(kinds).values() if isinstance(kind, Kind))
    return tuple(kind for kind in every if (kind.group, kind.plural) in seen)


def served() -> tuple[Kind[Any], ...]:
    """The kinds that some controller is for, and on which it may hold a finalizer."""
    held = {rule.resource for rules in NEEDS.values() for rule in rules if rule.resource.endswith("/finalizers")}
    return tuple(kind for kind in kinds.SLURM_KINDS if f"{kind.plural}/finalizers" in held)


def roles() -> dict[str, tuple[Rule, ...]]:
    """The sets of rules that the chart's roles include, by name."""
    needed = merged(rule for rules in NEEDS.values() for rule in rules)
    return {
        "operator.objects": tuple(rule for rule in needed if rule.resource not in CLUSTER_SCOPED),
        "operator.nodes": tuple(rule for rule in needed if rule.resource in CLUSTER_SCOPED),
        "operator.marks": MARKS,
        "operator.own": OWN,
        "operator.rivals": RIVALS,
        "metrics": METRICS,
        "webhook.objects": WEBHOOK,
        "webhook.trust": WEBHOOK_TRUST,
        "webhook.secret": WEBHOOK_SECRET,
    }


def merged(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """One rule per resource, with all verbs that any of the rules gives."""
    verbs: dict[tuple[str, str, tuple[str, ...]], set[str]] = {}
    for rule in rules:
        verbs.setdefault((rule.group, rule.resource, rule.names), set()).update(rule.verbs)
    return tuple(
        Rule(group, resource, tuple(sorted(verbs[group, resource, names])), names)
        for group, resource, names in sorted(verbs)
    )


def template() -> str:
    """The chart's file of named rule sets."""
    lines = ["{{/* Made by `kubeslurm rbac` from what each controller needs; edit operator/rbac.py instead. */}}"]
    for name, rules in roles().items():
        lines += ["", f'{{{{- define "slurm-operator.rules.{name}" }}}}', *_lines(rules), "{{- end }}"]
    return "\n".join(lines) + "\n"


def _lines(rules: Iterable[Rule]) -> Iterator[str]:
    for rule in rules:
        yield f'- apiGroups: ["{rule.group}"]'
        yield f"  resources: [{rule.resource}]"
        if rule.names:
            yield "  resourceNames:"
            yield from (f"    - {name}" for name in rule.names)
        yield f"  verbs: [{', '.join(rule.verbs)}]"
