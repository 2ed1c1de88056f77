"""Where the API server serves each kind."""

from typing import Any

import pytest

from kubeslurm.api.kinds import CONTROLLER_REVISION, LEASE, NODE, NODESET, POD, SLURM_KINDS, Kind, kind_of


@pytest.mark.parametrize(
    ("kind", "where", "path"),
    [
        (POD, {}, "/api/v1/pods"),
        (POD, {"namespace": "a"}, "/api/v1/namespaces/a/pods"),
        (POD, {"namespace": "a", "name": "b"}, "/api/v1/namespaces/a/pods/b"),
        (POD, {"namespace": "a", "name": "b", "subresource": "status"}, "/api/v1/namespaces/a/pods/b/status"),
        (NODE, {"name": "n"}, "/api/v1/nodes/n"),
        (NODE, {"namespace": "ignored", "name": "n"}, "/api/v1/nodes/n"),
        (NODESET, {"namespace": "a"}, "/apis/slinky.slurm.net/v1beta1/namespaces/a/nodesets"),
        (LEASE, {"namespace": "a"}, "/apis/coordination.k8s.io/v1/namespaces/a/leases"),
    ],
)
def test_paths(kind: Kind[Any], where: dict[str, str], path: str) -> None:
    assert kind.path(**where) == path


def test_a_tree_says_its_kind() -> None:
    assert kind_of({"apiVersion": "apps/v1", "kind": "ControllerRevision"}) is CONTROLLER_REVISION
    assert kind_of({"apiVersion": "v1", "kind": "Pod"}) is POD


def test_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(KeyError):
        kind_of({"apiVersion": "example.com/v1", "kind": "Pod"})


def test_classes_are_named_like_their_kinds() -> None:
    assert all(kind.type.__name__ == kind.kind for kind in SLURM_KINDS)
