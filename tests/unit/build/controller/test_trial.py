"""The pod that tries a configuration: what it has of the real one, and what it must not touch."""

from typing import Any

import msgspec

from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.build.controller import trial

CONF = """\
ClusterName=x
SlurmctldHost=x-controller-0(x-controller.ns)
StateSaveLocation=/var/spool/slurmctld/x
AccountingStorageHost=db,\\
other
MaxJobCount=10
"""


def test_the_trial_keeps_line_numbers() -> None:
    lines = trial.trial_conf(CONF, "x-controller-0").splitlines()
    assert lines[5] == "MaxJobCount=10"
    assert len(lines) > 6


def test_the_trial_touches_neither_state_nor_database_nor_address_of_the_cluster() -> None:
    text = trial.trial_conf(CONF, "x-controller-0")
    assert "/var/spool" not in text
    assert "x-controller.ns" not in text
    assert "db" not in text.replace("accounting_storage", "")
    assert "other" not in text


def pod_spec(template: Tree, node: str = "", **spec: Any) -> Tree:
    metadata = {"name": "x", "namespace": "ns", "uid": "u"}
    tree = {"metadata": metadata, "spec": {"template": {"spec": template}, **spec}}
    made: Tree = trial.pod(msgspec.convert(tree, Controller), "digest", node)["spec"]
    return made


FILES = {"name": "files", "hostPath": {"path": "/site"}}
MOUNT = {"name": "files", "mountPath": "/mnt/site"}
FETCH = {"name": "fetch", "image": "fetch:1", "volumeMounts": [MOUNT, {"name": "statesave", "mountPath": "/state"}]}


def test_the_trial_mounts_what_a_user_mounts_into_slurmctld() -> None:
    spec = pod_spec({"volumes": [FILES], "initContainers": [FETCH]}, slurmctld={"volumeMounts": [MOUNT]})
    assert FILES in spec["volumes"]
    assert [each["name"] for each in spec["initContainers"]] == ["fetch"]
    (container,) = spec["containers"]
    assert MOUNT in container["volumeMounts"]
    assert {each["name"] for each in container["volumeMounts"]} <= {each["name"] for each in spec["volumes"]}


def test_the_state_of_the_cluster_is_not_mounted() -> None:
    again = {"name": "again", "persistentVolumeClaim": {"claimName": "state"}}
    spec = pod_spec({"volumes": [again]}, persistence={"enabled": True, "existingClaim": "state"})
    assert not any("persistentVolumeClaim" in each for each in spec["volumes"])
    assert {"name": "statesave", "emptyDir": {}} in spec["volumes"]
    made = {"name": "made", "persistentVolumeClaim": {"claimName": "statesave-x-controller-0"}}
    assert made not in pod_spec({"volumes": [made]})["volumes"]


def test_a_trial_with_a_claim_runs_where_slurmctld_has_it() -> None:
    claim = {"name": "plugins", "persistentVolumeClaim": {"claimName": "plugins"}}
    assert pod_spec({"volumes": [claim]}, "node-1")["nodeName"] == "node-1"
    assert "nodeName" not in pod_spec({"volumes": [claim]})
    assert "nodeName" not in pod_spec({"volumes": [FILES]}, "node-1")


def test_containers_beside_slurmctld_take_no_part_in_a_trial() -> None:
    spec = pod_spec({"containers": [{"name": "exporter", "image": "exporter:1"}]})
    assert [each["name"] for each in spec["containers"]] == ["trial"]
    assert "initContainers" not in spec
