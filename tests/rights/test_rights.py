"""What the product was seen to ask for during the end-to-end tests, next to what the chart allows it.

`make test-cluster` runs it after all of them; it reads what they left in .requests.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from kubeslurm.control.rights import Rule
from kubeslurm.operator import rbac
from tests.e2e.conftest import REQUESTS
from tests.support import audit
from tests.support.audit import Asked

OPERATOR = "system:serviceaccount:slinky:slurm-operator"
WEBHOOK = "system:serviceaccount:slinky:slurm-operator-webhook"
ACCOUNTS = {"operator": OPERATOR, "metrics": OPERATOR, "webhook": WEBHOOK}
NAMES = {
    rbac.OPERATOR_NAME: "slurm-operator",
    rbac.WEBHOOK_NAME: "slurm-operator-webhook",
    rbac.CERTIFICATES_NAME: "slurm-operator-webhook-certificates",
}
SERVED = ("accountings", "controllers", "loginsets", "nodesets", "restapis", "tokens")


class Right(NamedTuple):
    role: str
    resource: str
    verb: str


def rights(role: str, resources: tuple[str, ...], *verbs: str) -> set[Right]:
    return {Right(role, resource, verb) for resource in resources for verb in verbs}


# Rights that stay although nothing here uses them.
EXCUSED = (
    # Objects that the Go operator wrote to are read whole once, and their fields moved to us by patch. Of these kinds
    # the installation that the tests take over has written to NodeSets only.
    rights("operator.objects", tuple(kind for kind in SERVED if kind != "nodesets"), "get")
    | rights("operator.objects", ("loginsets", "tokens"), "patch")
    # An admission plugin that is off by default wants it of whoever names an owner that blocks.
    | rights("operator.objects", tuple(f"{kind}/finalizers" for kind in SERVED), "update")
    # Metrics are open by default; the chart has these rules only when they are not.
    | rights("metrics", ("tokenreviews",), "create")
    # There is a mutating webhook only when the chart is told to look at bindings of pods.
    | rights("webhook.trust", ("mutatingwebhookconfigurations",), "patch")
)


@pytest.fixture(scope="module")
def asked() -> set[Asked]:
    """All requests of the operator and the webhook."""
    parts = list(REQUESTS.glob("*/*"))
    assert parts, "there is no record of requests: run the whole of tests/e2e first"
    return audit.read(parts, *ACCOUNTS.values())


def granted() -> Iterator[tuple[Right, Rule]]:
    """Every verb of every rule, but a list beside a watch: only servers that do not stream lists see that."""
    for role, rules in rbac.roles().items():
        for rule in rules:
            for verb in rule.verbs:
                if verb != "list" or "watch" not in rule.verbs:
                    yield Right(role, rule.resource, verb), rule


def is_use(asked: Asked, right: Right, rule: Rule) -> bool:
    target = asked.objectRef
    resource = f"{target.resource}/{target.subresource}" if target.subresource else target.resource
    return (
        asked.username == ACCOUNTS[right.role.partition(".")[0]]
        and (target.apiGroup, resource) == (rule.group, rule.resource)
        and right.verb in asked.verbs
        and (not rule.names or target.name in {NAMES.get(name, name) for name in rule.names})
    )


def test_nothing_was_forbidden(asked: set[Asked]) -> None:
    assert {each.username for each in asked} == {OPERATOR, WEBHOOK}
    assert [each for each in asked if each.forbidden] == []


def test_every_right_was_used_or_has_an_excuse_that_still_holds(asked: set[Asked]) -> None:
    unused = {right for right, rule in granted() if not any(is_use(each, right, rule) for each in asked)}
    assert unused == EXCUSED
