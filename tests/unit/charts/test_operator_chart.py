"""The chart `slurm-operator`, rendered by helm."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from kubeslurm.api.kinds import SLURM_KINDS
from kubeslurm.operator import rbac
from kubeslurm.operator.controllers import SETTINGS
from kubeslurm.operator.settings.load import load
from kubeslurm.operator.settings.model import LeaveSettings, WebhookSettings
from kubeslurm.webhooks.app import BINDING_PATH, path_of

ROOT = Path(__file__).parents[3]
CHART = ROOT / "charts" / "slurm-operator"
HELM = Path(sys.executable).parent / "helm"
FOREIGN = {"Certificate", "Issuer", "CustomResourceDefinition"}

# Every key that values files for this chart may hold, with other than the default values.
COMPONENT: dict[str, Any] = {
    "enabled": True,
    "replicas": 2,
    "imagePullPolicy": "Always",
    "image": {"repository": "registry.example/op", "tag": "1.2", "digest": None},
    "serviceAccount": {"create": True, "name": "custom"},
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "affinity": {"nodeAffinity": {}},
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"a": "b"}},
        }
    ],
    "podSecurityContext": {"fsGroup": 1000},
    "securityContext": {"runAsUser": 1000},
    "resources": {"limits": {"memory": "256Mi"}},
    "pdb": {"enabled": True, "minAvailable": 1, "maxUnavailable": None},
    "logLevel": "debug",
    "healthPort": 9081,
    "metricsPort": 9080,
    "metricsSecure": True,
    "leaderElection": True,
    "namespaces": "team-a, team-b",
}
EVERYTHING: dict[str, Any] = {
    "nameOverride": "",
    "fullnameOverride": "",
    "namespaceOverride": "",
    "imagePullSecrets": [{"name": "pull"}],
    "imagePullPolicy": "IfNotPresent",
    "priorityClassName": "system-cluster-critical",
    "crds": {"enabled": False},
    "propagatedNodeConditions": ["GpuHealthy", "NetworkHealthy"],
    "drainOnNodeConditions": ["GpuFault", "DiskFault"],
    "drainOnNodeTaints": True,
    "slurmDrainOnNode": "Taint",
    "extraObjects": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-extra"}}],
    "operator": {
        **COMPONENT,
        **{
            f"{kind}Workers": 8
            for kind in ("accounting", "controller", "loginset", "nodeset", "restapi", "slurmclient", "token")
        },
        "profile": True,
        "profileAddr": "localhost:6060",
    },
    "webhook": {
        **COMPONENT,
        "serviceAccount": {"create": False, "name": "custom-webhook"},
        "podsBinding": True,
        "timeoutSeconds": 5,
        "serverPort": 9444,
        "validating": {
            "failurePolicy": "Ignore",
            "matchConditions": [{"name": "x", "expression": "true"}],
            "matchPolicy": "Exact",
            "namespaceSelector": {"matchLabels": {"slurm": "yes"}},
        },
        "mutating": {
            "failurePolicy": "Fail",
            "matchConditions": [{"name": "y", "expression": "true"}],
            "matchPolicy": "Exact",
        },
    },
    "certManager": {"enabled": True, "secretName": "certs", "duration": "100h0m0s", "renewBefore": "10h0m0s"},
}

CASES: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "everything set": EVERYTHING,
    "selected namespaces": {"operator": {"namespaces": "team-a,team-b"}, "webhook": {"namespaces": ["team-a"]}},
    "cert-manager": {"certManager": {"enabled": True}},
    "own certificate": {"webhook": {"existingCertSecret": "mine", "caBundle": "PEM"}},
    "no webhook": {"webhook": {"enabled": False}},
    "no operator": {"operator": {"enabled": False}},
    "images as strings": {"operator": {"image": "a/b:c"}, "webhook": {"image": "d/e@sha256:00"}},
    "secure metrics": {"operator": {"metricsSecure": True}},
    "bindings": {"webhook": {"podsBinding": True}},
}

Objects = dict[tuple[str, str, str], Any]


def helm(values: str, *, release: str = "slurm-operator") -> subprocess.CompletedProcess[str]:
    command = [str(HELM), "template", release, str(CHART), "--namespace=slinky", "--values=-"]
    return subprocess.run(command, input=values, capture_output=True, text=True, check=False)


@cache
def rendered(values: str, release: str = "slurm-operator") -> Objects:
    result = helm(values, release=release)
    assert result.returncode == 0, result.stderr
    trees = [tree for tree in yaml.safe_load_all(result.stdout) if tree]
    objects = {(t["kind"], t["metadata"].get("namespace", ""), t["metadata"]["name"]): t for t in trees}
    assert len(objects) == len(trees)
    return objects


def render(**values: Any) -> Objects:
    return rendered(json.dumps(values))


def container(objects: Objects, deployment: str) -> Any:
    (found,) = objects["Deployment", "slinky", deployment]["spec"]["template"]["spec"]["containers"]
    return found


@pytest.mark.parametrize("case", CASES)
def test_every_object_is_valid_kubernetes(case: str) -> None:
    for (kind, _, _), tree in render(**CASES[case]).items():
        if kind not in FOREIGN:
            kubernetes_validate.validate(tree, kubernetes_validate.latest_version(), strict=True)


@pytest.mark.parametrize("case", CASES)
def test_the_processes_understand_the_arguments_they_are_given(case: str) -> None:
    objects = render(**CASES[case])
    for name, kind in (("slurm-operator", SETTINGS), ("slurm-operator-webhook", WebhookSettings)):
        if ("Deployment", "slinky", name) in objects:
            load(kind, container(objects, name)["args"], {})
    if job := objects.get(("Job", "slinky", "slurm-operator-leave")):
        (leaver,) = job["spec"]["template"]["spec"]["containers"]
        load(LeaveSettings, leaver["args"], {})


def test_the_objects_have_the_names_that_others_rely_on() -> None:
    assert set(render()) == {
        ("ServiceAccount", "slinky", "slurm-operator"),
        ("ServiceAccount", "slinky", "slurm-operator-webhook"),
        ("ClusterRole", "", "slurm-operator"),
        ("ClusterRole", "", "slurm-operator-webhook"),
        ("ClusterRoleBinding", "", "slurm-operator"),
        ("ClusterRoleBinding", "", "slurm-operator-webhook"),
        ("Role", "slinky", "slurm-operator-own"),
        ("RoleBinding", "slinky", "slurm-operator-own"),
        ("Role", "slinky", "slurm-operator-webhook-certificates"),
        ("RoleBinding", "slinky", "slurm-operator-webhook-certificates"),
        ("Secret", "slinky", "slurm-operator-webhook-certificates"),
        ("Service", "slinky", "slurm-operator"),
        ("Service", "slinky", "slurm-operator-webhook"),
        ("Deployment", "slinky", "slurm-operator"),
        ("Deployment", "slinky", "slurm-operator-webhook"),
        ("Job", "slinky", "slurm-operator-leave"),
        ("ValidatingWebhookConfiguration", "", "slurm-operator-webhook"),
    }


def test_another_release_name_keeps_the_names() -> None:
    assert ("Deployment", "slinky", "slurm-operator") in rendered("{}", "op")


def test_values_reach_the_operator() -> None:
    objects = render(**EVERYTHING)
    environ = {"POD_NAMESPACE": "slinky", "KUBESLURM_CLUSTER_DOMAIN": "example.org"}
    settings, warnings = load(SETTINGS, container(objects, "slurm-operator")["args"], environ)
    expected: Any = SETTINGS  # with the fields that the controllers add
    assert settings == expected(
        namespace="slinky",
        cluster_domain="example.org",
        namespaces=("team-a", "team-b"),
        health_addr=":9081",
        metrics_addr=":9080",
        metrics_secure=True,
        leader_elect=True,
        leader_elect_namespace="slinky",
        log_level="debug",
        propagated_node_conditions=("GpuHealthy", "NetworkHealthy"),
        drain_on_node_conditions=("GpuFault", "DiskFault"),
        drain_on_node_taints=True,
        slurm_drain_on_node="Taint",
        accounting_workers=8,
        controller_workers=8,
        loginset_workers=8,
        nodeset_workers=8,
        restapi_workers=8,
        slurmclient_workers=8,
        token_workers=8,
    )
    assert len(warnings) == 2  # the Go profiler's two flags
    assert container(objects, "slurm-operator")["image"] == "registry.example/op:1.2"
    assert ("ConfigMap", "", "slurm-operator-extra") in objects
    assert ("PodDisruptionBudget", "slinky", "slurm-operator") in objects


def test_the_webhook_configuration_points_at_paths_that_are_served() -> None:
    (tree,) = (tree for (kind, _, _), tree in render().items() if kind == "ValidatingWebhookConfiguration")
    paths = {hook["name"]: hook["clientConfig"]["service"]["path"] for hook in tree["webhooks"]}
    assert paths == {f"{kind.kind.lower()}-{kind.version}.kb.io": path_of(kind) for kind in SLURM_KINDS}
    plurals = {hook["rules"][0]["resources"][0] for hook in tree["webhooks"]}
    assert plurals == {kind.plural for kind in SLURM_KINDS}
    (binding,) = render(webhook={"podsBinding": True})["MutatingWebhookConfiguration", "", "slurm-operator-webhook"][
        "webhooks"
    ]
    assert binding["clientConfig"]["service"]["path"] == BINDING_PATH


def test_the_operators_own_writes_do_not_wait_for_the_webhook() -> None:
    tree = render()["ValidatingWebhookConfiguration", "", "slurm-operator-webhook"]
    for hook in tree["webhooks"]:
        conditions = {each["name"]: each["expression"] for each in hook["matchConditions"]}
        assert "system:serviceaccount:slinky:slurm-operator" in conditions["not-the-operator"]


def test_only_new_objects_and_changes_of_a_spec_wait_for_the_webhook() -> None:
    tree = render()["ValidatingWebhookConfiguration", "", "slurm-operator-webhook"]
    for hook in tree["webhooks"]:
        assert hook["rules"][0]["operations"] == ["CREATE", "UPDATE"]
        (expression,) = (each["expression"] for each in hook["matchConditions"] if each["name"] == "spec-is-new")
        assert "deletionTimestamp" in expression
        assert "object.spec == oldObject.spec" in expression


def test_nodes_are_patched_only_where_they_shall_show_drains() -> None:
    def verbs(**values: Any) -> set[str]:
        rules = render(**values)["ClusterRole", "", "slurm-operator"]["rules"]
        return {verb for rule in rules if rule["resources"][0].split("/")[0] == "nodes" for verb in rule["verbs"]}

    assert "patch" not in verbs()
    assert "patch" in verbs(slurmDrainOnNode="Condition")


def test_with_selected_namespaces_only_nodes_are_read_cluster_wide() -> None:
    objects = render(operator={"namespaces": "team-a,team-b"}, webhook={"enabled": False})
    assert objects["ClusterRole", "", "slurm-operator"]["rules"] == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}
    ]
    everywhere = render()["ClusterRole", "", "slurm-operator"]["rules"]
    for namespace in ("team-a", "team-b"):
        rules = objects["Role", namespace, "slurm-operator"]["rules"]
        assert all(rule in everywhere for rule in rules)
        (subject,) = objects["RoleBinding", namespace, "slurm-operator"]["subjects"]
        assert (subject["name"], subject["namespace"]) == ("slurm-operator", "slinky")


def test_pods_run_without_privileges_on_a_read_only_root() -> None:
    objects = render()
    for name in ("slurm-operator", "slurm-operator-webhook"):
        assert container(objects, name)["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert (
            objects["Deployment", "slinky", name]["spec"]["template"]["spec"]["securityContext"]["runAsNonRoot"] is True
        )


def test_certificates_come_from_where_the_values_say() -> None:
    def volumes(objects: Objects) -> list[str]:
        spec = objects["Deployment", "slinky", "slurm-operator-webhook"]["spec"]["template"]["spec"]
        return [volume["secret"]["secretName"] for volume in spec["volumes"] if "secret" in volume]

    ours, managed, own = render(), render(certManager={"enabled": True}), render(webhook={"existingCertSecret": "mine"})
    assert volumes(ours) == []
    assert "--cert-secret=slurm-operator-webhook-certificates" in container(ours, "slurm-operator-webhook")["args"]
    assert volumes(managed) == ["slurm-operator-webhook-ca"]
    assert (
        managed["Certificate", "slinky", "slurm-operator-webhook"]["spec"]["secretName"] == "slurm-operator-webhook-ca"
    )
    annotations = managed["ValidatingWebhookConfiguration", "", "slurm-operator-webhook"]["metadata"]["annotations"]
    assert annotations["cert-manager.io/inject-ca-from"] == "slinky/slurm-operator-webhook"
    assert volumes(own) == ["mine"]


def test_the_crds_come_along_when_asked_for() -> None:
    names = {name for (kind, _, name) in render(crds={"enabled": True}) if kind == "CustomResourceDefinition"}
    assert names == {f"{kind.plural}.{kind.group}" for kind in SLURM_KINDS}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"operator": {"metricsPort": 70000}}, "choose a port from 1 to 65535"),
        ({"operator": {"metricsPort": 0, "metricsSecure": True}}, "operator.metricsSecure needs metrics"),
        ({"webhook": {"metricsSecure": True}}, "webhook.metricsSecure needs metrics"),
    ],
)
def test_values_that_cannot_work_are_refused_with_a_remedy(values: dict[str, Any], said: str) -> None:
    result = helm(json.dumps(values))
    assert result.returncode != 0
    assert said in result.stderr


def test_the_rules_in_the_chart_are_those_of_the_code() -> None:
    committed = (CHART / "templates" / "_rules.tpl").read_text()
    assert committed == rbac.template(), "run `kubeslurm rbac --output charts/slurm-operator/templates/_rules.tpl`"
