"""The rights that the product asks for."""

from kubeslurm.api import kinds
from kubeslurm.control import rights
from kubeslurm.operator import rbac
from kubeslurm.operator.controllers import REGISTRATIONS


def test_what_a_controller_watches_it_may_list_and_watch() -> None:
    for each in REGISTRATIONS:
        granted = {(rule.group, rule.resource, verb) for rule in each.rules for verb in rule.verbs}
        assert {(kind.group, kind.plural, verb) for kind in each.cached for verb in ("list", "watch")} <= granted


def test_nothing_is_granted_by_wildcard() -> None:
    for rules in rbac.roles().values():
        for rule in rules:
            assert "*" not in (rule.group, rule.resource, *rule.verbs)


def test_only_tokens_delete_secrets() -> None:
    deleting = {
        each.name
        for each in REGISTRATIONS
        for rule in each.rules
        if rule.resource == "secrets" and "delete" in rule.verbs
    }
    assert deleting == {"token"}


def test_nodes_are_only_read_unless_their_drains_shall_be_shown() -> None:
    (nodes,) = rbac.roles()["operator.nodes"]
    assert set(nodes.verbs) <= {"get", "list", "watch"}
    assert {(rule.resource, *rule.verbs) for rule in rbac.roles()["operator.nodedrain"]} == {
        ("nodes", "patch"),
        ("nodes/status", "patch"),
    }


def test_rules_for_one_resource_are_merged() -> None:
    rules = [
        rights.on(kinds.POD, "get"),
        rights.on(kinds.POD, "patch", "get"),
        rights.on(kinds.POD, "patch", subresource="status"),
    ]
    assert rights.merged(rules) == (
        rights.Rule("", "pods", ("get", "patch")),
        rights.Rule("", "pods/status", ("patch",)),
    )


def test_only_kinds_that_a_controller_needs_are_cached() -> None:
    assert kinds.POD in rbac.cached()
    assert kinds.SERVICE_MONITOR not in rbac.cached()


def test_every_kind_of_an_index_is_cached_by_its_controller() -> None:
    missing = [
        (each.name, index.name) for each in REGISTRATIONS for index in each.indices if index.kind not in each.cached
    ]
    assert missing == []
