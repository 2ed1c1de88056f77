"""The rights that the product asks for."""

from kubeslurm.api import kinds
from kubeslurm.operator import rbac
from kubeslurm.operator.settings import OperatorSettings
from kubeslurm.operator.wiring import parts


def test_every_controller_says_what_it_needs_and_nobody_else_does() -> None:
    assert {part.name for part in parts(OperatorSettings())} == set(rbac.NEEDS) - {"events"}


def test_nothing_is_granted_by_wildcard() -> None:
    for rules in rbac.roles().values():
        for rule in rules:
            assert "*" not in (rule.group, rule.resource, *rule.verbs)


def test_only_tokens_delete_secrets() -> None:
    deleting = {
        name
        for name, rules in rbac.NEEDS.items()
        for rule in rules
        if rule.resource == "secrets" and "delete" in rule.verbs
    }
    assert deleting == {"token"}


def test_nodes_are_only_read_unless_their_drains_shall_be_shown() -> None:
    (nodes,) = rbac.roles()["operator.nodes"]
    assert set(nodes.verbs) <= {"get", "list", "watch"}
    assert {(rule.resource, *rule.verbs) for rule in rbac.roles()["operator.marks"]} == {
        ("nodes", "patch"),
        ("nodes/status", "patch"),
    }


def test_nodes_are_marked_only_on_request() -> None:
    assert "marks" in {part.name for part in parts(OperatorSettings(slurm_drain_on_node="Taint"))}


def test_rules_for_one_resource_are_merged() -> None:
    rules = [rbac.on(kinds.POD, "get"), rbac.on(kinds.POD, "patch", "get"), rbac.on(kinds.POD, "patch", sub="status")]
    assert rbac.merged(rules) == (
        rbac.Rule("", "pods", ("get", "patch")),
        rbac.Rule("", "pods/status", ("patch",)),
    )


def test_every_kind_that_is_watched_is_known() -> None:
    assert kinds.POD in rbac.watched()
    assert kinds.SERVICE_MONITOR not in rbac.watched()
