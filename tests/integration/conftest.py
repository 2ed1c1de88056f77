"""One real kube-apiserver with etcd, shared by all tests here."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from kubeslurm.api.crds import crds, to_yaml
from kubeslurm.api.kinds import NAMESPACE, SLURM_KINDS
from kubeslurm.cli.up.repair import ESTABLISHED
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.transport.connection import Connection, connect
from kubeslurm.local.cluster.cluster import Cluster
from kubeslurm.local.errors import LocalError
from kubeslurm.slurm.rest import session
from tests.support.kubernetes import Kubernetes
from tests.support.proxy import Proxy
from tests.support.waiting import WITHIN, wait_for


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A control plane without nodes, separate from the clusters of the user who runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        shared = Kubernetes("integration")
        shared.up([], timeout=400)
    try:
        yield shared
    finally:
        shared.down(purge=True)


@pytest.fixture(scope="session")
def definitions(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """The cluster with our CustomResourceDefinitions established."""
    file = tmp_path_factory.mktemp("crds") / "crds.yaml"
    file.write_text("---\n".join(to_yaml(crd) for crd in crds().values()), encoding="utf-8")
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(file))
    cluster.kubectl("wait", ESTABLISHED, "--timeout=180s", *(f"crd/{name}" for name in crds()))
    wait_for("all kinds to be served", lambda: served(cluster))
    return cluster


def served(cluster: Cluster) -> bool:
    """Whether all new kinds can be listed and explained: the API server serves them one after the other."""
    try:
        shown = cluster.kubectl("api-resources", "--categories=slurm", "--output=name").split()
        for kind in SLURM_KINDS:
            cluster.kubectl("get", f"{kind.plural}.{kind.group}", "--all-namespaces")
            cluster.kubectl("explain", kind.plural, f"--api-version={kind.api_version}")
    except LocalError:
        return False
    return set(shown) == set(crds())


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine may be too busy to open a connection within a second."""
    monkeypatch.setattr(session, "CONNECT", WITHIN)


@pytest.fixture
async def connection(cluster: Cluster) -> AsyncIterator[Connection]:
    """A connection for one test, without the proxy."""
    made = Connection(connect(cluster.kubeconfig), timeout=60)
    yield made
    await made.close()


@pytest.fixture
async def namespace(connection: Connection, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """A namespace for one test."""
    name = request.node.name.split("[")[0].replace("_", "-")[:50].strip("-")
    kube = Kube(connection, Caches(connection), manager="test")
    async with asyncio.timeout(WITHIN):
        while await kube.get(NAMESPACE, Key("", name)) is not None:  # noqa: ASYNC110 (being deleted by the server)
            await asyncio.sleep(0.1)
    await kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    await kube.delete(NAMESPACE, Key("", name))


@pytest.fixture
async def proxy(cluster: Cluster, tmp_path: Path) -> AsyncIterator[Proxy]:
    """A proxy to the API server that can break and freeze connections."""
    made = Proxy(cluster, tmp_path / "kubeconfig")
    await made.open()
    yield made
    await made.close()
