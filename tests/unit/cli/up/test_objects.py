import json
from typing import Any

import pytest

from kubeslurm.cli.up import objects
from kubeslurm.cli.up.access import Access

MANIFEST = """---
# Source: slurm/templates/restapi.yaml
apiVersion: slinky.slurm.net/v1beta1
kind: RestApi
metadata:
  name: slurm
  namespace: slurm
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: wide
---
"""


def workload(replicas: int, **status: int) -> dict[str, Any]:
    metadata = {"name": "w", "namespace": "slurm"}
    return {"kind": "Deployment", "metadata": metadata, "spec": {"replicas": replicas}, "status": status}


class Kubectl(Access, frozen=True):
    """Prints a text, and keeps what it was asked for."""

    text: str
    asked: list[str]

    def run(self, *args: str, stdin: str | None = None) -> str:
        self.asked.append(stdin or "")
        return self.text


def test_every_object_of_a_manifest_is_looked_for() -> None:
    wanted = objects.expected(MANIFEST, "slurm")
    kubectl = Kubectl((), (), "", [])
    assert objects.live(kubectl, wanted) == []
    asked = json.loads(kubectl.asked[0])["items"]
    assert [(each["kind"], each["metadata"]) for each in asked] == [
        ("RestApi", {"name": "slurm", "namespace": "slurm"}),
        ("ClusterRole", {"name": "wide", "namespace": "slurm"}),
    ]
    assert objects.compare(wanted, [], settled=True) == ["RestApi slurm is missing", "ClusterRole wide is missing"]


def test_kubectl_prints_one_object_without_a_list() -> None:
    tree = {"kind": "RestApi", "metadata": {"name": "slurm"}}
    assert objects.live(Kubectl((), (), json.dumps(tree), []), []) == [tree]
    assert objects.live(Kubectl((), (), json.dumps({"items": [tree, tree]}), []), []) == [tree, tree]


def test_an_object_that_is_being_deleted_is_a_defect() -> None:
    wanted = objects.expected(MANIFEST, "slurm")
    found = [{**tree, "metadata": {**tree["metadata"], "deletionTimestamp": "now"}} for tree in wanted[:1]]
    assert objects.compare(wanted[:1], found, settled=False) == ["RestApi slurm is being deleted"]


@pytest.mark.parametrize(
    ("found", "settled", "defects"),
    [
        (workload(1, readyReplicas=1), True, []),
        (workload(2, readyReplicas=1), True, []),
        (workload(0), True, ["Deployment w does not run"]),
        (workload(0), False, ["Deployment w does not run"]),
        (workload(1), True, ["Deployment w does not run"]),
        (workload(1), False, []),
    ],
)
def test_a_workload_must_run_but_may_take_a_while_after_a_start(
    found: dict[str, Any], settled: bool, defects: list[str]
) -> None:
    assert objects.compare([workload(1)], [found], settled=settled) == defects


def test_a_workload_that_the_chart_itself_stops_is_no_defect() -> None:
    assert objects.compare([workload(0)], [workload(0)], settled=True) == []
