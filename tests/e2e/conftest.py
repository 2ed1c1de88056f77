"""One Kubernetes cluster with the operator and a small Slurm cluster for each test process, shared by all its tests.

It is brought up by the same code as `kubeslurm up`, and it stays up while KUBESLURM_KEEP is set.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from kubeslurm.cli.up import images
from kubeslurm.cli.up.access import local_access
from kubeslurm.cli.up.installation import Installation
from kubeslurm.local.cluster.cluster import Cluster
from kubeslurm.local.host import cache
from kubeslurm.local.host.progress import Progress
from kubeslurm.local.host.tasks import Tasks
from tests.support import audit
from tests.support.rest import wait_until_at_rest
from tests.support.slurm import Slurm

NAME = "-".join(filter(None, (os.environ.get("KUBESLURM_E2E", "e2e"), os.environ.get("PYTEST_XDIST_WORKER"))))
WORKERS = 2
REQUESTS = Path(__file__).parents[2] / ".requests"  # what the product asked of each API server, for tests/rights


class Shares(LoadScopeScheduling):  # type: ignore[misc]
    """One process takes a whole file, and everything about people, whose cluster is expensive."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "people" if "/people/" in file else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Shares:
    return Shares(config, log)


@pytest.fixture(scope="session")
def product() -> Iterator[Installation]:
    """The product as a user gets it: cluster, images, operator, Slurm with two workers."""
    keep = bool(os.environ.get("KUBESLURM_KEEP"))
    cluster = Cluster(NAME)
    if keep and cluster.running:
        yield Installation(local_access(cluster), tags_in(cluster))
        return
    cluster.down(purge=True)
    with Progress() as progress:
        with cache.lock("end-to-end", on_wait=lambda: progress.print("another test process builds the images")):
            images.build(images.groups(), tasks=Tasks(), progress=progress)
        whole = Installation.local(NAME, None, progress)
        whole.install({}, progress)
    try:
        yield whole
    finally:
        if not keep:
            keep_requests(cluster)
            cluster.down(purge=True)


def keep_requests(cluster: Cluster) -> None:
    """The whole audit log."""
    folder = REQUESTS / NAME
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for part in audit.parts_of(cluster):
        shutil.copy(part, folder)


def tags_in(cluster: Cluster) -> dict[str, str]:
    """The images that a kept cluster runs with."""
    path = "--output=jsonpath={.items[*].spec.containers[*].image}"
    images = cluster.kubectl("get", "pods", "--all-namespaces", path).split()
    return dict(image.removeprefix("localhost/").split(":") for image in images)


@pytest.fixture(scope="session")
def cluster(product: Installation) -> Cluster:
    return Cluster(NAME)


@pytest.fixture
def slurm(cluster: Cluster) -> Iterator[Slurm]:
    """Slurm with two idle workers; a test that changes it leaves it so, whichever comes next."""
    whole = Slurm(cluster)
    wait_until_at_rest(whole, WORKERS)
    yield whole
    for job in whole.run("squeue", "--noheader", "--format=%i", check=False).split():
        whole.run("scancel", job, check=False)


@pytest.fixture(autouse=True)
def last_words(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[None]:
    """After a failure: what the objects say, and the end of the operator's log."""
    failed = request.session.testsfailed
    yield
    if request.session.testsfailed > failed:
        print(cluster.kubectl("get", "slurm,pods", "--all-namespaces", "--output=wide", check=False))  # noqa: T201
        print(cluster.kubectl("logs", "--namespace=slinky", "deployment/slurm-operator", "--tail=60", check=False))  # noqa: T201
