"""A refusal of the API server names the field that a user can change."""

import pytest

from kubeslurm.report.refusal import Cause, Rejection, describe


@pytest.mark.parametrize(
    ("kind", "field", "reason", "remedy"),
    [
        ("Pod", "spec.containers[0].image", "FieldValueRequired", "set spec.slurmctld.image"),
        (
            "StatefulSet",
            "spec.template.spec.containers[0].ports[1].name",
            "FieldValueInvalid",
            "correct spec.slurmctld.ports[1].name",
        ),
        ("Pod", "spec.tolerations[0].key", "FieldValueInvalid", "correct spec.template.spec.tolerations[0].key"),
        ("Deployment", "spec.template.spec.hostNetwork", "", "correct spec.template.spec.hostNetwork"),
        ("Pod", "spec.initContainers[0].image", "FieldValueRequired", "correct its spec"),
        ("StatefulSet", "spec.replicas", "FieldValueInvalid", "correct its spec"),
        ("ConfigMap", "[]", "FieldValueTooLong", "correct its spec"),
    ],
)
def test_the_remedy_is_in_the_words_of_our_own_spec(kind: str, field: str, reason: str, remedy: str) -> None:
    said = describe(Rejection("x is invalid", kind, (Cause(field, reason),), "slurmctld"))
    assert said == f"the API server refuses a part of it: x is invalid; {remedy}"
