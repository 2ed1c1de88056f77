from typing import Any

import pytest

from kubeslurm.local.cluster.client import path_of


@pytest.mark.parametrize(
    ("version", "kind", "metadata", "path"),
    [
        ("v1", "Service", {"name": "a", "namespace": "n"}, "/api/v1/namespaces/n/services/a"),
        ("storage.k8s.io/v1", "StorageClass", {"name": "a"}, "/apis/storage.k8s.io/v1/storageclasses/a"),
    ],
)
def test_the_path_of_an_object_follows_from_its_kind(version: str, kind: str, metadata: Any, path: str) -> None:
    assert path_of({"apiVersion": version, "kind": kind, "metadata": metadata}) == path
