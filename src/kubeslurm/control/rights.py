"""Rights on Kubernetes objects, as controllers declare them and RBAC rules grant them."""

from collections.abc import Iterable
from typing import Any

import msgspec

from kubeslurm.api.kinds import Kind


class Rule(msgspec.Struct, frozen=True):
    """Verbs on one resource; with names, only on those objects."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()


def on(kind: Kind[Any], *verbs: str, subresource: str = "", names: tuple[str, ...] = ()) -> Rule:
    """Verbs on a kind, or on a subresource of it."""
    resource = f"{kind.plural}/{subresource}" if subresource else kind.plural
    return Rule(kind.group, resource, verbs, names)


def watch(*kinds: Kind[Any]) -> tuple[Rule, ...]:
    """What keeping kinds in memory needs."""
    return tuple(on(kind, "list", "watch") for kind in kinds)


def apply(*kinds: Kind[Any]) -> tuple[Rule, ...]:
    """What server-side apply needs; a take-over reads the object whole first."""
    return tuple(on(kind, "get", "create", "patch") for kind in kinds)


def serve(kind: Kind[Any]) -> tuple[Rule, ...]:
    """What the controller of a kind needs: finalizers by patch, the status, and to be named as a blocking owner."""
    return (
        on(kind, "get", "list", "watch", "patch"),
        on(kind, "patch", subresource="status"),
        on(kind, "update", subresource="finalizers"),
    )


def merged(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """One rule per resource, with all verbs that any of the rules gives."""
    verbs: dict[tuple[str, str, tuple[str, ...]], set[str]] = {}
    for rule in rules:
        verbs.setdefault((rule.group, rule.resource, rule.names), set()).update(rule.verbs)
    return tuple(
        Rule(group, resource, tuple(sorted(verbs[group, resource, names])), names)
        for group, resource, names in sorted(verbs)
    )
