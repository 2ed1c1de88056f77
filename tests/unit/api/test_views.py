"""What the operator reads of Kubernetes' own objects."""

from typing import Any

import msgspec
import pytest

from kubeslurm.api.kinds import CONFIGMAP, DEPLOYMENT, NODE, POD, SERVICE, STATEFULSET
from kubeslurm.api.meta import Tree
from kubeslurm.api.views import ContainerStatus, Pod

METADATA: Tree = {"name": "gpu-0", "namespace": "slurm", "uid": "u", "resourceVersion": "7"}


def pod(**parts: Any) -> Pod:
    return msgspec.json.decode(msgspec.json.encode({"metadata": METADATA} | parts), type=Pod)


def test_of_a_whole_pod_only_some_fields_are_kept() -> None:
    seen = pod(
        spec={
            "nodeName": "n1",
            "hostname": "gpu-0",
            "containers": [{"name": "slurmd", "image": "i", "env": [{"name": "A"}]}],
            "volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "b", "emptyDir": {}}],
        },
        status={"phase": "Running", "conditions": [{"type": "Ready", "status": "True", "lastProbeTime": None}]},
    )
    assert seen.ready
    assert seen.spec.hostname == "gpu-0"
    assert [volume.persistentVolumeClaim is not None for volume in seen.spec.volumes] == [True, False]


def test_a_pod_that_has_just_been_made_is_read() -> None:
    assert not pod().ready
    assert pod().target_node == ""


def test_the_controlling_owner_is_found() -> None:
    owners = [
        {"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1"},
        {"apiVersion": "v1", "kind": "B", "name": "b", "uid": "2", "controller": True},
    ]
    owner = pod(metadata=METADATA | {"ownerReferences": owners}).metadata.controller
    assert owner is not None
    assert owner.name == "b"


def pinned(*tests: Tree) -> Tree:
    terms = {"nodeSelectorTerms": [{"matchFields": list(tests)}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


@pytest.mark.parametrize(
    ("spec", "node"),
    [
        (pinned({"key": "metadata.name", "operator": "In", "values": ["n2"]}), "n2"),
        (pinned({"key": "metadata.name", "operator": "In", "values": ["n2"]}) | {"nodeName": "n1"}, "n1"),
        (pinned({"key": "metadata.name", "operator": "NotIn", "values": ["n2"]}), ""),
        (pinned({"key": "metadata.name", "operator": "In", "values": ["n2", "n3"]}), ""),
        ({"affinity": {"podAntiAffinity": {}}}, ""),
    ],
)
def test_a_pending_pod_names_the_node_it_must_run_on(spec: Tree, node: str) -> None:
    assert pod(spec=spec).target_node == node


@pytest.mark.parametrize(
    ("status", "started"),
    [
        ({}, False),
        ({"state": {"waiting": {"reason": "ImagePullBackOff"}}, "started": False}, False),
        ({"state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}}}, True),
        ({"state": {"terminated": {"exitCode": 1}}}, True),
        ({"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 3}, True),
        ({"state": {"waiting": {}}, "lastState": {"terminated": {"exitCode": 0}}}, True),
        ({"state": {"waiting": {}}, "containerID": "containerd://1"}, True),
    ],
)
def test_whether_a_process_may_ever_have_run(status: Tree, started: bool) -> None:
    assert msgspec.convert(status, ContainerStatus, strict=False).ever_started is started


def test_sidecars_are_found_among_the_init_containers() -> None:
    seen = pod(status={"initContainerStatuses": [{"name": "logfile", "ready": True}]})
    found = seen.container_status("logfile")
    assert found is not None
    assert found.ready
    assert seen.container_status("slurmd") is None


def test_a_node_is_read() -> None:
    body = {
        "metadata": {"name": "n1", "labels": {"a": "b"}},
        "spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule", "timeAdded": None}]},
        "status": {"conditions": [{"type": "Ready", "status": "Unknown"}], "allocatable": {"cpu": "8"}, "images": [{}]},
    }
    node = msgspec.json.decode(msgspec.json.encode(body), type=NODE.type)
    assert node.key == ("", "n1")
    assert node.spec.taints[0].key == "k"
    assert not node.ready


@pytest.mark.parametrize("kind", [SERVICE, DEPLOYMENT, STATEFULSET], ids=str)
def test_what_we_write_ourselves_is_kept_whole(kind: Any) -> None:
    spec = {"anything": [{"deep": None}]}
    fields = [{"manager": "kubeslurm", "operation": "Apply", "fieldsV1": {"f:spec": {}}}]
    body = {"metadata": METADATA | {"managedFields": fields}, "spec": spec, "status": {}}
    obj = msgspec.json.decode(msgspec.json.encode(body), type=kind.type)
    assert obj.spec == spec
    assert obj.metadata.managedFields[0].fieldsV1 == {"f:spec": {}}


def test_pods_do_not_carry_their_managed_fields() -> None:
    assert not hasattr(pod(metadata=METADATA | {"managedFields": [{}]}).metadata, "managedFields")


def test_views_are_not_tracked_by_the_garbage_collector() -> None:
    assert all(kind.type.__struct_config__.gc is False for kind in (POD, NODE, CONFIGMAP))
