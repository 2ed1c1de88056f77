"""One real kube-apiserver with etcd for all tests here."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from kubeslurm.api.crds import crds, to_yaml
from kubeslurm.api.kinds import NAMESPACE
from kubeslurm.cli.product import ESTABLISHED
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.connection import Connection, connect
from kubeslurm.local.cluster import Cluster
from tests.support.proxy import Proxy


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A control plane without nodes, kept apart from the clusters of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        shared = Cluster("integration")
        shared.up([])
    try:
        yield shared
    finally:
        shared.down(purge=True)


@pytest.fixture(scope="session")
def definitions(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """The cluster with our CustomResourceDefinitions in force."""
    file = tmp_path_factory.mktemp("crds") / "crds.yaml"
    file.write_text("---\n".join(to_yaml(crd) for crd in crds().values()), encoding="utf-8")
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(file))
    cluster.kubectl("wait", ESTABLISHED, "--timeout=60s", *(f"crd/{name}" for name in crds()))
    return cluster


@pytest.fixture
async def connection(cluster: Cluster) -> AsyncIterator[Connection]:
    """A connection of the test's own, past any proxy."""
    made = Connection(connect(cluster.kubeconfig), timeout=30)
    yield made
    await made.close()


@pytest.fixture
async def namespace(connection: Connection, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """A namespace of the test's own."""
    name = request.node.name.split("[")[0].replace("_", "-")[:50].strip("-")
    kube = Kube(connection, Caches(connection), manager="test")
    async with asyncio.timeout(60):
        while await kube.get(NAMESPACE, Key("", name)) is not None:  # noqa: ASYNC110 (being deleted by the server)
            await asyncio.sleep(0.1)
    await kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    await kube.delete(NAMESPACE, Key("", name))


@pytest.fixture
async def proxy(cluster: Cluster, tmp_path: Path) -> AsyncIterator[Proxy]:
    """A way to the API server that can be cut and frozen."""
    made = Proxy(cluster, tmp_path / "kubeconfig")
    await made.open()
    yield made
    await made.close()
