"""The Service and the configurations of the admission webhook."""

import pytest

from tests.unit.charts.test_operator_chart import render

NAME = "slurm-operator-webhook"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, {"https": 443, "health": 8081}),
        ({"metricsPort": 8080, "healthPort": 8082}, {"https": 443, "health": 8082, "metrics": 8080}),
    ],
)
def test_the_service_has_the_ports_of_its_pods(values: dict[str, int], expected: dict[str, int]) -> None:
    objects = render(webhook=values)
    ports = objects["Service", "slinky", NAME]["spec"]["ports"]
    assert {port["name"]: port["port"] for port in ports} == expected
    (container,) = objects["Deployment", "slinky", NAME]["spec"]["template"]["spec"]["containers"]
    assert {port["targetPort"] for port in ports} == {port["name"] for port in container["ports"]}


def test_selected_namespaces_hold_for_bindings_as_for_objects() -> None:
    objects = render(webhook={"podsBinding": True, "namespaces": "team-a,team-b"})
    selected = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["team-a", "team-b"]}
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"):
        for hook in objects[kind, "", NAME]["webhooks"]:
            assert selected in hook["namespaceSelector"]["matchExpressions"]
    (everywhere,) = render(webhook={"podsBinding": True})["MutatingWebhookConfiguration", "", NAME]["webhooks"]
    assert [each["operator"] for each in everywhere["namespaceSelector"]["matchExpressions"]] == ["NotIn"]
