"""What a user writes in a template, over what the operator would have made."""

import copy
from typing import Any

import pytest

from kubeslurm.build.common.merge import (
    DuplicatePortError,
    merge_container,
    merge_metadata,
    merge_pod_spec,
    merge_service_spec,
    pruned,
)

OURS = {"exec": {"command": ["scontrol", "ping"]}, "periodSeconds": 1, "failureThreshold": 30}

CONTAINERS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "args are appended": ({"args": ["-Z"]}, {"args": ["-v"]}, {"args": ["-Z", "-v"]}),
    "args alone": ({}, {"args": ["-v"]}, {"args": ["-v"]}),
    "command is replaced": ({"command": ["a", "b"]}, {"command": ["c"]}, {"command": ["c"]}),
    "an empty list replaces an atomic one": ({"command": ["a"]}, {"command": []}, {"command": []}),
    "an empty list leaves a keyed one": ({"env": [{"name": "A"}]}, {"env": []}, {"env": [{"name": "A"}]}),
    "empty strings do not override": ({"image": "slurmd:1"}, {"image": ""}, {"image": "slurmd:1"}),
    "nulls do not override": ({"image": "slurmd:1"}, {"image": None}, {"image": "slurmd:1"}),
    "zero does not override": ({"a": 3}, {"a": 0}, {"a": 3}),
    "false does not override": ({"stdin": True}, {"stdin": False}, {"stdin": True}),
    "an empty map does not override": (
        {"resources": {"limits": {"cpu": 1}}},
        {"resources": {}},
        {"resources": {"limits": {"cpu": 1}}},
    ),
    "maps merge": (
        {"resources": {"limits": {"cpu": 1, "memory": "1Gi"}}},
        {"resources": {"limits": {"cpu": 2}, "requests": {"cpu": 1}}},
        {"resources": {"limits": {"cpu": 2, "memory": "1Gi"}, "requests": {"cpu": 1}}},
    ),
    "what the user adds to a keyed list comes first": (
        {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
        {"env": [{"name": "C", "value": "3"}]},
        {"env": [{"name": "C", "value": "3"}, {"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
    ),
    "a shared key stays in its place": (
        {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "D", "value": "4"}]},
        {"env": [{"name": "B", "value": "9"}]},
        {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "9"}, {"name": "D", "value": "4"}]},
    ),
    "a new key before a shared one keeps the user's order": (
        {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
        {"env": [{"name": "C", "value": "3"}, {"name": "B", "value": "9"}]},
        {"env": [{"name": "C", "value": "3"}, {"name": "A", "value": "1"}, {"name": "B", "value": "9"}]},
    ),
    "a plain value replaces a computed one": (
        {"env": [{"name": "POD_CPUS", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]},
        {"env": [{"name": "POD_CPUS", "value": "4"}]},
        {"env": [{"name": "POD_CPUS", "value": "4"}]},
    ),
    "an empty value inside a list survives": (
        {"env": [{"name": "A", "value": "1"}]},
        {"env": [{"name": "A", "value": ""}]},
        {"env": [{"name": "A", "value": ""}]},
    ),
    "ports merge by number": (
        {"ports": [{"name": "slurmd", "containerPort": 6818}]},
        {"ports": [{"containerPort": 6818, "hostPort": 6818}]},
        {"ports": [{"name": "slurmd", "containerPort": 6818, "hostPort": 6818}]},
    ),
    "mounts merge by path": (
        {"volumeMounts": [{"name": "slurm-config", "mountPath": "/etc/slurm", "readOnly": True}]},
        {"volumeMounts": [{"name": "mine", "mountPath": "/etc/slurm"}, {"name": "home", "mountPath": "/home"}]},
        {
            "volumeMounts": [
                {"name": "mine", "mountPath": "/etc/slurm", "readOnly": True},
                {"name": "home", "mountPath": "/home"},
            ]
        },
    ),
    "capabilities are replaced": (
        {"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}},
        {"securityContext": {"capabilities": {"add": ["NET_ADMIN"]}}},
        {"securityContext": {"capabilities": {"add": ["NET_ADMIN"]}}},
    ),
    "a volume device and envFrom": (
        {"volumeDevices": [{"devicePath": "/dev/a", "name": "a"}], "envFrom": [{"prefix": "A"}]},
        {"volumeDevices": [{"devicePath": "/dev/a", "name": "b"}], "envFrom": [{"prefix": "B"}]},
        {"volumeDevices": [{"devicePath": "/dev/a", "name": "b"}], "envFrom": [{"prefix": "B"}]},
    ),
    "a handler of the user's replaces ours": (
        {"livenessProbe": OURS},
        {"livenessProbe": {"httpGet": {"path": "/livez", "port": 6817}}},
        {"livenessProbe": {"httpGet": {"path": "/livez", "port": 6817}, "periodSeconds": 1, "failureThreshold": 30}},
    ),
    "a threshold alone keeps our handler": (
        {"startupProbe": OURS},
        {"startupProbe": {"failureThreshold": 600}},
        {"startupProbe": {**OURS, "failureThreshold": 600}},
    ),
    "a probe of the user's where we have none": (
        {},
        {"readinessProbe": {"tcpSocket": {"port": 6818}}},
        {"readinessProbe": {"tcpSocket": {"port": 6818}}},
    ),
    "an empty probe means ours": ({"livenessProbe": OURS}, {"livenessProbe": {}}, {"livenessProbe": OURS}),
    "a hook of the user's replaces ours": (
        {"lifecycle": {"preStop": {"exec": {"command": ["a"]}}, "postStart": {"exec": {"command": ["b"]}}}},
        {"lifecycle": {"preStop": {"sleep": {"seconds": 5}}}},
        {"lifecycle": {"preStop": {"sleep": {"seconds": 5}}, "postStart": {"exec": {"command": ["b"]}}}},
    ),
    "unprivileged is an instruction": (
        {"securityContext": {"privileged": True, "runAsUser": 401, "allowPrivilegeEscalation": True}},
        {"securityContext": {"privileged": False, "runAsUser": 0, "allowPrivilegeEscalation": False}},
        {"securityContext": {"privileged": False, "runAsUser": 0, "allowPrivilegeEscalation": False}},
    ),
    "a null in place of an instruction is not one": (
        {"securityContext": {"privileged": True}},
        {"securityContext": {"privileged": None}},
        {"securityContext": {"privileged": True}},
    ),
    "fields we do not know pass through": ({}, {"futureField": {"deep": [1]}}, {"futureField": {"deep": [1]}}),
}

PODS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "containers are added, not merged": (
        {"containers": [{"name": "slurmd"}], "initContainers": [{"name": "logfile"}]},
        {"containers": [{"name": "slurmd", "image": "x"}], "initContainers": [{"name": "prepare"}]},
        {
            "containers": [{"name": "slurmd"}, {"name": "slurmd", "image": "x"}],
            "initContainers": [{"name": "logfile"}, {"name": "prepare"}],
        },
    ),
    "no containers of the user's": (
        {"containers": [{"name": "a"}]},
        {"containers": None},
        {"containers": [{"name": "a"}]},
    ),
    "a volume of the same name keeps one source": (
        {"volumes": [{"name": "slurm-logfile", "emptyDir": {"medium": "Memory"}}]},
        {"volumes": [{"name": "slurm-logfile", "hostPath": {"path": "/var/log"}}]},
        {"volumes": [{"name": "slurm-logfile", "hostPath": {"path": "/var/log"}}]},
    ),
    "a volume of the same kind merges": (
        {"volumes": [{"name": "run", "emptyDir": {"medium": "Memory"}}]},
        {"volumes": [{"name": "run", "emptyDir": {"sizeLimit": "1Gi"}}]},
        {"volumes": [{"name": "run", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}]},
    ),
    "an empty source inside a list survives": (
        {"volumes": []},
        {"volumes": [{"name": "scratch", "emptyDir": {}}]},
        {"volumes": [{"name": "scratch", "emptyDir": {}}]},
    ),
    "tolerations are replaced": (
        {"tolerations": [{"key": "a"}]},
        {"tolerations": [{"key": "b"}]},
        {"tolerations": [{"key": "b"}]},
    ),
    "affinity terms are replaced, the rest of affinity merges": (
        {"affinity": {"podAntiAffinity": {"required": [{"topologyKey": "host"}]}}},
        {"affinity": {"podAntiAffinity": {"required": [{"topologyKey": "zone"}]}, "nodeAffinity": {"x": [1]}}},
        {"affinity": {"podAntiAffinity": {"required": [{"topologyKey": "zone"}]}, "nodeAffinity": {"x": [1]}}},
    ),
    "node selectors merge": (
        {"nodeSelector": {"a": "1"}},
        {"nodeSelector": {"b": "2"}},
        {"nodeSelector": {"a": "1", "b": "2"}},
    ),
    "lists with keys": (
        {
            "imagePullSecrets": [{"name": "a"}],
            "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a"]}],
            "topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "a"}],
            "schedulingGates": [{"name": "g"}],
        },
        {
            "imagePullSecrets": [{"name": "b"}],
            "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["b"]}],
            "topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 2}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "b"}],
            "schedulingGates": [{"name": "g"}],
        },
        {
            "imagePullSecrets": [{"name": "b"}, {"name": "a"}],
            "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["b"]}],
            "topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 2}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "b"}],
            "schedulingGates": [{"name": "g"}],
        },
    ),
    "explicit false and zero": (
        {
            "hostNetwork": True,
            "automountServiceAccountToken": True,
            "enableServiceLinks": True,
            "terminationGracePeriodSeconds": 30,
        },
        {
            "hostNetwork": False,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 0,
        },
        {
            "hostNetwork": False,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 0,
        },
    ),
    "other false values are not instructions": ({"hostPID": True}, {"hostPID": False}, {"hostPID": True}),
    "the pod's user": (
        {"securityContext": {"runAsUser": 401}},
        {"securityContext": {"runAsUser": 0}},
        {"securityContext": {"runAsUser": 0}},
    ),
    "a null inside a list item takes ours away": (
        {"volumes": [{"name": "a", "secret": {"secretName": "s", "defaultMode": 256}}]},
        {"volumes": [{"name": "a", "secret": {"defaultMode": None}}]},
        {"volumes": [{"name": "a", "secret": {"secretName": "s"}}]},
    ),
}


@pytest.mark.parametrize("case", CONTAINERS)
def test_a_container_of_the_user_goes_over_ours(case: str) -> None:
    base, user, expected = CONTAINERS[case]
    before = copy.deepcopy((base, user))
    merged = merge_container(base, user)
    assert merged == expected
    assert (base, user) == before


@pytest.mark.parametrize("case", PODS)
def test_a_pod_spec_of_the_user_goes_over_ours(case: str) -> None:
    base, user, expected = PODS[case]
    before = copy.deepcopy((base, user))
    assert merge_pod_spec(base, user) == expected
    assert (base, user) == before


def test_metadata_of_a_later_layer_wins() -> None:
    merged = merge_metadata(
        {"name": "ignored", "labels": {"a": "cr", "b": "cr"}, "annotations": None},
        None,
        {"labels": {"b": "template"}, "annotations": {"x": "template"}},
        {"labels": {"a": "operator"}},
    )
    assert merged == {"labels": {"a": "operator", "b": "template"}, "annotations": {"x": "template"}}


def test_a_service_keeps_the_users_spec_and_gets_our_port_and_selector() -> None:
    user = {
        "type": "NodePort",
        "ports": [{"name": "extra", "port": 80}],
        "selector": {"x": "1", "app": "theirs"},
        "externalIPs": ["192.0.2.1"],
    }
    merged = merge_service_spec(user, {"name": "slurmctld", "port": 6817}, {"app": "ours"})
    assert merged == {
        "type": "NodePort",
        "ports": [{"name": "extra", "port": 80}, {"name": "slurmctld", "port": 6817}],
        "selector": {"x": "1", "app": "ours"},
    }
    assert "externalIPs" in user


@pytest.mark.parametrize("port", [{"name": "slurmctld", "port": 1}, {"name": "other", "port": 6817}])
def test_a_service_port_that_collides_is_refused_with_a_remedy(port: dict[str, Any]) -> None:
    with pytest.raises(DuplicatePortError, match=r"spec\.service\.spec\.ports"):
        merge_service_spec({"ports": [port]}, {"name": "slurmctld", "port": 6817}, {})


def test_a_service_without_a_template_has_one_port() -> None:
    assert merge_service_spec(None, {"port": 6820}, {"app": "x"}) == {
        "ports": [{"port": 6820}],
        "selector": {"app": "x"},
    }


def test_pruning_removes_maps_that_end_up_empty() -> None:
    assert pruned({"a": {"b": {"c": ""}}, "d": [], "e": [{"f": ""}]}) == {"d": [], "e": [{"f": ""}]}
