"""Real Slurm daemons from our own images."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from kubeslurm.local.host import cache
from kubeslurm.local.host.progress import Progress
from kubeslurm.local.host.tasks import Tasks
from kubeslurm.local.images import builder, store
from kubeslurm.local.sources import SOURCES
from kubeslurm.slurm.rest import session
from kubeslurm.slurm.rest.client import SlurmClient
from tests.slurm.cluster import Cluster
from tests.slurm.lab import Lab, Roots
from tests.support.waiting import WITHIN


@pytest.fixture(scope="session")
def roots() -> Roots:
    """The images' root file systems, built and unpacked unless they are at hand."""
    with Progress() as progress:
        return Roots(*(_root(name, progress) for name in Roots._fields))


def _root(name: str, progress: Progress) -> Path:
    spec = builder.BuildSpec(name, "test", SOURCES / "images" / "slurm", target=name)
    image = builder.build(spec, tasks=Tasks(), progress=progress)
    entry = cache.Entry(f"test-{name}", image.id[:16])
    return entry.fill(lambda folder: store.extract(image, folder, tasks=Tasks()), notify=progress.print)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine may be too busy to open a connection within a second."""
    monkeypatch.setattr(session, "CONNECT", WITHIN)


@pytest.fixture
def lab(roots: Roots, tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(roots, tmp_path)
    try:
        yield lab
    finally:
        lab.close()


@pytest.fixture(scope="session")
def shared(roots: Roots, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    lab = Lab(roots, tmp_path_factory.mktemp("lab"))
    try:
        yield Cluster(lab)
    finally:
        lab.close()


@pytest.fixture
def cluster(shared: Cluster) -> Iterator[Cluster]:
    """The cluster, which each test finds without jobs."""
    yield shared
    if shared.used:
        shared.quiet()


@pytest.fixture(params=["v0.0.44", "v0.0.45"])
async def client(request: pytest.FixtureRequest, cluster: Cluster) -> AsyncIterator[SlurmClient]:
    client = cluster.lab.client([request.param])
    yield client
    await client.close()
