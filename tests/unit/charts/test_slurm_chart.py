"""The slurm chart, rendered by the real helm and read the way the operator reads it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes_validate import validate  # type: ignore[import-untyped]

from kubeslurm.api.slinky.accounting import Accounting
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.loginset import LoginSet
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.api.slinky.restapi import RestApi
from tests.support.manifests import decoded

CHART = Path(__file__).parents[3] / "charts" / "slurm"
HELM = Path(sys.executable).with_name("helm")
Objects = dict[tuple[str, str], dict[str, Any]]


def helm(values: dict[str, Any], release: str = "slurm") -> "subprocess.CompletedProcess[str]":
    argv = [str(HELM), "template", release, str(CHART), "--namespace=slurm", "--values=-"]
    return subprocess.run(argv, input=json.dumps(values), capture_output=True, text=True, check=False)


def render(values: dict[str, Any] | None = None, release: str = "slurm") -> Objects:
    done = helm(values or {}, release)
    assert done.returncode == 0, done.stderr
    trees = [tree for tree in yaml.safe_load_all(done.stdout) if tree]
    return {(tree["kind"], tree["metadata"]["name"]): tree for tree in trees}


def test_default_values_make_controller_and_rest_api_and_leave_the_keys_to_the_operator() -> None:
    objects = render()
    assert set(objects) == {
        ("Secret", "slurm-sssd-conf"),
        ("ConfigMap", "slurm-config-extra"),
        ("Controller", "slurm"),
        ("RestApi", "slurm"),
    }
    assert "annotations" not in objects["Controller", "slurm"]["metadata"]


def test_every_rendering_is_the_same() -> None:
    assert helm({}).stdout == helm({}).stdout


def test_keys_without_values_are_made_by_the_operator() -> None:
    controller = render({"slurmKey": None, "jwtKey": None})["Controller", "slurm"]
    assert "annotations" not in controller["metadata"]


def test_a_key_that_the_user_brings_is_not_made_by_the_operator() -> None:
    values = {
        "slurmKey": {"create": False},
        "jwtKey": {"create": False, "secretRef": {"name": "mine", "key": "jwt"}},
        "controller": {"metadata": {"annotations": {"note": "kept"}}},
    }
    controller = render(values)["Controller", "slurm"]
    marks = {"kubeslurm.dev/make-slurm-key": "false", "kubeslurm.dev/make-jwt-key": "false", "note": "kept"}
    assert controller["metadata"]["annotations"] == marks
    assert controller["spec"]["jwtKeyRef"] == {"name": "mine", "key": "jwt"}
    assert controller["spec"]["template"]["metadata"]["annotations"] == {"note": "kept"}, "pods are not marked"


def test_ordinary_objects_are_valid_kubernetes() -> None:
    values = {
        "configFiles": {"gres.conf": "AutoDetect=nvidia\n"},
        "prologScripts": {"10-hello.sh": "#!/bin/sh\nexit 0\n"},
        "priorityClass": {"enabled": True, "create": True},
        "restapi": {"pdb": {"enabled": True}},
        "vendor": {"nvidia": {"dcgm": {"enabled": True}}},
    }
    for tree in render(values).values():
        if "slinky" not in tree["apiVersion"]:
            validate(tree, "1.29")


@pytest.mark.parametrize(
    ("release", "values", "name"),
    [
        ("slurm", {}, "slurm"),
        ("my-slurm", {}, "my-slurm"),
        ("lab", {}, "lab-slurm"),
        ("lab", {"fullnameOverride": "x"}, "x"),
    ],
)
def test_the_full_name_follows_the_release(release: str, values: dict[str, Any], name: str) -> None:
    assert ("Controller", name) in render(values, release)


def test_our_objects_are_what_the_operator_reads() -> None:
    values = {
        "accounting": {"enabled": True},
        "nodesets": {"gpu": {"replicas": 2, "ssh": {"enabled": True}, "partition": {"enabled": True}}},
        "loginsets": {"main": {"rootSshAuthorizedKeys": "ssh-ed25519 AAAA x"}},
        "controller": {"metrics": {"enabled": True}, "service": {"port": 7000}},
    }
    objects = render(values)
    controller = decoded(objects["Controller", "slurm"])
    nodeset = decoded(objects["NodeSet", "slurm-worker-gpu"])
    assert isinstance(controller, Controller)
    assert controller.spec.accountingRef is not None
    assert controller.spec.service is not None
    assert controller.spec.service.port == 7000
    assert isinstance(nodeset, NodeSet)
    assert nodeset.slurm_name == "gpu"
    assert isinstance(decoded(objects["RestApi", "slurm"]), RestApi)
    assert isinstance(decoded(objects["Accounting", "slurm"]), Accounting)
    assert isinstance(decoded(objects["LoginSet", "slurm-login-main"]), LoginSet)


def test_pods_have_the_labels_of_the_chart_that_no_upgrade_changes() -> None:
    own = {"metadata": {"labels": {"app.kubernetes.io/part-of": "mine"}, "annotations": {"a": "b"}}}
    objects = render({"nodesets": {"gpu": own}})
    lasting = {"app.kubernetes.io/part-of": "slurm", "app.kubernetes.io/managed-by": "Helm"}
    for kind, labels in (
        ("Controller", lasting),
        ("RestApi", lasting),
        ("NodeSet", lasting | own["metadata"]["labels"]),
    ):
        (tree,) = (tree for (each, _), tree in objects.items() if each == kind)
        assert tree["spec"]["template"]["metadata"]["labels"] == labels
        assert tree["metadata"]["labels"]["helm.sh/chart"]
    template = objects["NodeSet", "slurm-worker-gpu"]["spec"]["template"]
    assert template["metadata"]["annotations"] == {"a": "b"}


def test_pull_secrets_of_all_pods_and_of_one_are_joined() -> None:
    values = {
        "imagePullSecrets": [{"name": "all"}],
        "nodesets": {"gpu": {"podSpec": {"imagePullSecrets": [{"name": "own"}]}}, "cpu": {}},
    }
    objects = render(values)
    pods = {name: tree["spec"]["template"]["spec"] for (_, name), tree in objects.items() if "worker" in name}
    assert pods["slurm-worker-gpu"]["imagePullSecrets"] == [{"name": "own"}, {"name": "all"}]
    assert pods["slurm-worker-cpu"]["imagePullSecrets"] == [{"name": "all"}]


def test_partitions_become_lines_of_slurm_conf() -> None:
    values = {
        "nodesets": {"gpu": {}},
        "partitions": {
            "all": {"enabled": True},
            "fast": {"enabled": True, "nodesets": ["gpu"], "config": "MaxTime=60"},
        },
    }
    lines = render(values)["Controller", "slurm"]["spec"]["extraConf"].splitlines()
    assert "PartitionName=all Nodes=ALL Default=YES MaxTime=UNLIMITED" in lines
    assert "PartitionName=fast Nodes=gpu MaxTime=60" in lines


@pytest.mark.parametrize(
    ("partition", "words"),
    [
        ({"enabled": True, "nodesets": ["nosuch"]}, "names the nodeset"),
        ({"enabled": True, "nodesets": []}, "names no nodesets"),
    ],
)
def test_a_partition_without_workers_is_refused(partition: dict[str, Any], words: str) -> None:
    done = helm({"partitions": {"bad": partition}})
    assert done.returncode
    assert words in done.stderr


def test_jobs_are_isolated_unless_the_user_decides_otherwise() -> None:
    objects = render()
    assert "TaskPlugin=task/cgroup,task/affinity" in objects["Controller", "slurm"]["spec"]["extraConf"]
    assert "ConstrainRAMSpace=yes" in objects["ConfigMap", "slurm-config-extra"]["data"]["cgroup.conf"]
    own = render(
        {
            "controller": {"extraConf": "taskplugin=task/none\n"},
            "configFiles": {"cgroup.conf": "CgroupPlugin=disabled\n"},
        }
    )
    assert "TaskPlugin=task/cgroup" not in own["Controller", "slurm"]["spec"]["extraConf"]
    assert own["ConfigMap", "slurm-config-extra"]["data"]["cgroup.conf"] == "CgroupPlugin=disabled\n"
    off = render({"isolation": {"enabled": False}})
    assert ("ConfigMap", "slurm-config-extra") not in off


def test_tokens_may_say_who_their_user_is_unless_the_user_decides_otherwise() -> None:
    line = "AuthAltParameters=use_jwt_client_ids"
    assert line in render()["Controller", "slurm"]["spec"]["extraConf"]
    assert line not in render({"jwtClientIds": False})["Controller", "slurm"]["spec"]["extraConf"]
    own = render({"controller": {"extraConfMap": {"AuthAltParameters": "max_token_lifespan=60"}}})
    assert line not in own["Controller", "slurm"]["spec"]["extraConf"]


def test_empty_values_in_maps_leave_their_keys_out() -> None:
    empty: dict[str, Any] = {
        "SwitchParameters": "",
        "GresTypes": [],
        "MailProg": None,
        "ReturnToService": 0,
        "MaxArraySize": 7,
    }
    options = {"MaxTime": "", "Hidden": False}
    values = {
        "controller": {"extraConfMap": empty},
        "nodesets": {"gpu": {"extraConfMap": {"Gres": "", "Weight": 5}, "partition": {"configMap": options}}},
    }
    objects = render(values)
    extra = objects["Controller", "slurm"]["spec"]["extraConf"].splitlines()
    assert {"MaxArraySize=7", "ReturnToService=0"} <= set(extra)
    assert not any(line.startswith(("SwitchParameters", "GresTypes", "MailProg")) for line in extra)
    nodeset = objects["NodeSet", "slurm-worker-gpu"]["spec"]
    assert nodeset["extraConf"] == "Weight=5"
    assert nodeset["partition"]["config"] == "Hidden=false"


def test_old_control_groups_can_be_chosen() -> None:
    files = render({"isolation": {"cgroup": "v1"}})["ConfigMap", "slurm-config-extra"]["data"]
    assert files["cgroup.conf"].startswith("CgroupPlugin=cgroup/v1\n")


def test_an_external_controller_brings_its_own_keys() -> None:
    objects = render({"controller": {"external": True, "externalConfig": {"host": "ctl.example.org"}}})
    assert ("Secret", "slurm-auth-slurm") not in objects
    spec = objects["Controller", "slurm"]["spec"]
    assert spec["externalConfig"] == {"host": "ctl.example.org", "port": 6817}
    assert "slurmctld" not in spec


def test_scripts_get_their_prefix_and_are_referred_to() -> None:
    objects = render({"prologScripts": {"10-a.sh": "#!/bin/sh\n"}, "epilogScriptRefs": [{"name": "mine"}]})
    assert list(objects["ConfigMap", "slurm-prolog-scripts"]["data"]) == ["prolog-10-a.sh"]
    spec = objects["Controller", "slurm"]["spec"]
    assert spec["prologScriptRefs"] == [{"name": "slurm-prolog-scripts"}]
    assert spec["epilogScriptRefs"] == [{"name": "mine"}]


@pytest.mark.parametrize("part", ["slurmd", "podSpec"])
@pytest.mark.parametrize("kind", ["limits", "requests"])
def test_dcgm_mounts_its_directory_into_gpu_workers_only(part: str, kind: str) -> None:
    gpu = {part: {"resources": {kind: {"nvidia.com/gpu": 8}}}}
    objects = render({"vendor": {"nvidia": {"dcgm": {"enabled": True}}}, "nodesets": {"gpu": gpu, "cpu": {}}})
    mounts = objects["NodeSet", "slurm-worker-gpu"]["spec"]["slurmd"]["volumeMounts"]
    assert [mount["name"] for mount in mounts] == ["dcgm-job-mapping"]
    assert not objects["NodeSet", "slurm-worker-cpu"]["spec"]["slurmd"]["volumeMounts"]


NETWORKS = ["default", *(f"gpu-{number}" for number in range(8))]


@pytest.mark.parametrize(
    ("model", "gres", "second"),
    [("a3mega", "gpu:nvidia_h100_80gb_hbm3:8", "eth1"), ("a3ultra", "gpu:nvidia_h200:8", "eth2")],
)
def test_google_machines_get_their_networks_gpus_and_drivers(model: str, gres: str, second: str) -> None:
    entry = {"targetNodeSet": "gpu", "nodePool": "pool", "networks": NETWORKS}
    own = {"slurmd": {"env": [{"name": "LD_LIBRARY_PATH", "value": "/mine"}, {"name": "A", "value": "1"}]}}
    objects = render({"vendor": {"google": {model: [entry]}}, "nodesets": {"gpu": own, "cpu": {}}})
    spec = objects["NodeSet", "slurm-worker-gpu"]["spec"]
    assert spec["extraConf"] == f"Gres={gres}"
    assert spec["slurmd"]["resources"]["limits"]["nvidia.com/gpu"] == 8
    assert {"name": "LD_LIBRARY_PATH", "value": "/mine"} in spec["slurmd"]["env"], "what the user set stays"
    template = spec["template"]
    assert template["spec"]["nodeSelector"]["cloud.google.com/gke-nodepool"] == "pool"
    interfaces = json.loads(template["metadata"]["annotations"]["networking.gke.io/interfaces"])
    assert interfaces[:2] == [
        {"interfaceName": "eth0", "network": "default"},
        {"interfaceName": second, "network": "gpu-0"},
    ]
    assert len({each["interfaceName"] for each in interfaces}) == 9
    names = [container["name"] for container in template["spec"].get("containers", [])]
    assert names == (["tcpxo-daemon"] if model == "a3mega" else [])
    mounted = {mount["name"] for mount in spec["slurmd"]["volumeMounts"]}
    assert mounted <= {volume["name"] for volume in template["spec"]["volumes"]}
    assert objects["ConfigMap", "slurm-config-extra"]["data"]["gres.conf"] == "AutoDetect=nvidia\n"
    assert "GresTypes=gpu" in objects["Controller", "slurm"]["spec"]["extraConf"].splitlines()
    assert "annotations" not in objects["NodeSet", "slurm-worker-cpu"]["spec"]["template"].get("metadata", {})


def test_google_machines_without_a_network_for_each_gpu_are_refused() -> None:
    entry = {"targetNodeSet": "gpu", "nodePool": "pool", "networks": ["default"]}
    done = helm({"vendor": {"google": {"a3ultra": [entry]}}, "nodesets": {"gpu": {}}})
    assert done.returncode
    assert "needs exactly 9 networks, not 1" in done.stderr


def test_a_job_that_lost_its_worker_starts_again_soon_unless_the_user_decides_otherwise() -> None:
    line = "SchedulerParameters=requeue_delay=5"
    assert line in render()["Controller", "slurm"]["spec"]["extraConf"].splitlines()
    assert "requeue_delay" not in render({"requeueDelay": None})["Controller", "slurm"]["spec"]["extraConf"]
    own = render({"controller": {"extraConf": "SchedulerParameters=bf_interval=10\n"}})
    assert "requeue_delay" not in own["Controller", "slurm"]["spec"]["extraConf"]
