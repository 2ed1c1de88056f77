import json
from pathlib import Path
from typing import Any

import pytest

from kubeslurm.cli.up import deletion
from kubeslurm.cli.up.access import Access
from kubeslurm.cli.up.helm import Release
from kubeslurm.local.errors import LocalError
from kubeslurm.local.host.progress import Step

FORCED = {"kubeslurm.dev/force-delete": "true"}


def tree(kind: str, *, deleted: bool = False, name: str = "slurm", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "slurm"} | ({"deletionTimestamp": "now"} if deleted else {})
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata | more, "spec": {}}


class Cluster(Access, frozen=True):
    """Shows these objects one time after the other, then none; keeps the other calls."""

    shown: list[list[dict[str, Any]]]
    calls: list[tuple[str, ...]]

    def run(self, *args: str, stdin: str | None = None) -> str:
        if args[0] == "get":
            return json.dumps({"items": self.shown.pop(0) if self.shown else []})
        self.calls.append(args)
        return ""


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion, "PAUSE", 0.0)


def wait(*shown: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    cluster = Cluster((), (), list(shown), [])
    deletion.wait_until_gone(cluster, Step("install"), shown[0])
    assert not cluster.shown
    return cluster.calls


def test_objects_that_are_all_being_deleted_are_waited_for() -> None:
    both = [tree("RestApi", deleted=True), tree("NodeSet", deleted=True)]
    assert wait(both, both[:1], []) == []


def test_a_restapi_that_nodesets_hold_is_let_go_because_no_job_needs_it() -> None:
    held = [tree("RestApi", deleted=True), tree("NodeSet")]
    forced = [tree("RestApi", deleted=True, annotations=FORCED), tree("NodeSet")]
    (call,) = wait(held, forced, [tree("NodeSet")])
    assert call[:4] == ("annotate", "restapi", "slurm", "--namespace=slurm")
    assert "kubeslurm.dev/force-delete=true" in call


@pytest.mark.parametrize("kind", ["Controller", "Accounting"])
def test_what_holds_the_deletion_of_other_objects_is_said_at_once(kind: str) -> None:
    with pytest.raises(LocalError) as caught:
        wait([tree(kind, deleted=True), tree("NodeSet")])
    text = str(caught.value)
    assert f"{kind} slurm is being deleted, and waits until its NodeSets are deleted, too." in text
    command = f"kubectl annotate {kind.lower()} slurm --namespace=slurm kubeslurm.dev/force-delete=true"
    assert f"`{command}`" in text


def test_a_controller_that_the_user_has_let_go_is_waited_for() -> None:
    forced = [tree("Controller", deleted=True, annotations=FORCED), tree("NodeSet")]
    assert wait(forced, [tree("NodeSet")]) == []


@pytest.mark.parametrize(
    ("more", "cause"),
    [
        ({"status": {"conditions": [{"type": "Progressing", "status": "True", "message": "jobs run"}]}}, "jobs run"),
        ({"status": {"conditions": [{"type": "Terminating", "status": "True", "message": "objects"}]}}, "objects"),
        ({"metadata": {"finalizers": ["a/b"]}}, "it waits for a/b"),
        ({}, "it waits for its dependents"),
    ],
)
def test_a_deletion_that_takes_long_is_reported_with_its_cause(
    more: dict[str, Any], cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion, "TIMEOUT", -1.0)
    found = tree("NodeSet", deleted=True, **more.get("metadata", {})) | {"status": more.get("status", {})}
    with pytest.raises(LocalError, match=f"NodeSet slurm is still being deleted: {cause}"):
        wait([found])


def test_only_what_an_earlier_installation_left_in_the_namespace_counts() -> None:
    ours = tree("Controller", annotations={"meta.helm.sh/release-name": "slurm"})
    another = tree("Controller", name="b", annotations={"meta.helm.sh/release-name": "b"})
    cluster = Cluster((), (), [[ours, another, tree("NodeSet")]], [])
    assert deletion.leftovers(cluster, Release("slurm", "slurm", Path(), {})) == [ours]


def test_the_nodeset_that_others_wait_for_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion, "TIMEOUT", -1.0)
    with pytest.raises(LocalError, match="NodeSet slurm is still being deleted"):
        wait([tree("Accounting", deleted=True), tree("NodeSet", deleted=True)])
