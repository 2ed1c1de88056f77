"""What each process may do in a cluster; the chart's roles are made from this and nothing else.

The operator's rights are those that its controllers declare, and a few of the process itself.

With selected namespaces the object rules become Roles there, and only Nodes are read cluster-wide.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from kubeslurm.api import kinds
from kubeslurm.api.kinds import Kind
from kubeslurm.control.rights import Rule, merged, on
from kubeslurm.operator.controllers import REGISTRATIONS
from kubeslurm.operator.leadership.other_operators import LEASE_NAME

OPERATOR_NAME = '{{ include "slurm-operator.fullname" . }}'
WEBHOOK_NAME = '{{ include "slurm-operator.webhook.fullname" . }}'
CERTIFICATES_NAME = '{{ include "slurm-operator.certificates.secret" . }}'


EVENTS = (on(kinds.EVENT, "create", "patch"),)
# In its own namespace: the Lease, and before the release is removed, stopping the Deployment.
OWN = (
    on(kinds.LEASE, "create"),
    on(kinds.LEASE, "get", "update", names=(LEASE_NAME,)),
    on(kinds.DEPLOYMENT, "get", "patch", names=(OPERATOR_NAME,)),
)
ACCESS_REVIEWS = Rule("authorization.k8s.io", "subjectaccessreviews", ("create",))
# Their Leases, and whether the accounts beside such a Lease have the rights of an operator.
OTHER_OPERATORS = (
    on(kinds.LEASE, "list", "watch", names=(LEASE_NAME,)),
    on(kinds.SERVICE_ACCOUNT, "list"),
    ACCESS_REVIEWS,
)
METRICS = (Rule("authentication.k8s.io", "tokenreviews", ("create",)), ACCESS_REVIEWS)
WEBHOOK = (on(kinds.CONFIGMAP, "get"), on(kinds.PERSISTENT_VOLUME_CLAIM, "get"), on(kinds.NODESET, "list"))
WEBHOOK_TRUST = tuple(
    on(kind, "get", "patch", names=(WEBHOOK_NAME,)) for kind in (kinds.MUTATING_WEBHOOKS, kinds.VALIDATING_WEBHOOKS)
)
# A right to create cannot be tied to a name; it makes the Secret again when someone has deleted it.
WEBHOOK_SECRET = (on(kinds.SECRET, "create"), on(kinds.SECRET, "get", "patch", names=(CERTIFICATES_NAME,)))

CLUSTER_SCOPED = frozenset({kinds.NODE.plural})


def cached() -> tuple[Kind[Any], ...]:
    """The kinds that the operator holds in memory: those that some controller watches or reads."""
    needed = frozenset[Kind[Any]]().union(*(each.cached for each in REGISTRATIONS))
    return tuple(kind for kind in kinds.ALL if kind in needed)


def served() -> tuple[Kind[Any], ...]:
    """The kinds that some controller serves, and on which it may hold a finalizer."""
    return tuple(each.kind for each in REGISTRATIONS if each.kind is not None)


def roles() -> dict[str, tuple[Rule, ...]]:
    """The sets of rules that the chart's roles include, by name; what a user has to switch on has a set of its own."""
    always = [each for each in REGISTRATIONS if each.enabled is None]
    needed = merged((*EVENTS, *(rule for each in always for rule in each.rules)))
    return {
        "operator.objects": tuple(rule for rule in needed if rule.resource not in CLUSTER_SCOPED),
        "operator.nodes": tuple(rule for rule in needed if rule.resource in CLUSTER_SCOPED),
        **{f"operator.{each.name}": each.rights for each in REGISTRATIONS if each.enabled is not None},
        "operator.own": OWN,
        "operator.other-operators": OTHER_OPERATORS,
        "metrics": METRICS,
        "webhook.objects": WEBHOOK,
        "webhook.trust": WEBHOOK_TRUST,
        "webhook.secret": WEBHOOK_SECRET,
    }


def template() -> str:
    """The chart's file of named rule sets."""
    lines = [
        "{{/* Made by `kubeslurm rbac` from what each controller declares in its registration.py; do not edit. */}}"
    ]
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
