"""One Kubernetes cluster with the operator and a small Slurm cluster, shared by all end-to-end tests.

It is brought up by the same code as `kubeslurm up`, and it stays up while KUBESLURM_KEEP is set.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubeslurm.cli.product import Product, access_to
from kubeslurm.local.cluster import Cluster
from kubeslurm.local.progress import Progress
from tests.support.slurm import Slurm

NAME = os.environ.get("KUBESLURM_E2E", "e2e")
WORKERS = 2
RIGHTS = Path(__file__).with_name("test_rights.py")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Which rights were used is known when all is done: asked last, and not at all when only a part was wanted."""
    rights = [item for item in items if item.path == RIGHTS]
    others = [item for item in items if item.path != RIGHTS]
    if set(RIGHTS.parent.rglob("test_*.py")) - {RIGHTS} <= {item.path for item in others}:
        items[:] = others + rights
    elif rights:
        items[:] = others
        config.hook.pytest_deselected(items=rights)


@pytest.fixture(scope="session")
def product() -> Iterator[Product]:
    """The product as a user gets it: cluster, images, operator, Slurm with two workers."""
    keep = bool(os.environ.get("KUBESLURM_KEEP"))
    cluster = Cluster(NAME)
    if keep and cluster.running:
        yield Product(access_to(cluster), tags_in(cluster))
        return
    cluster.down(purge=True)
    with Progress() as progress:
        whole = Product.local(NAME, None, progress)
        whole.install({}, progress)
    try:
        yield whole
    finally:
        if not keep:
            cluster.down(purge=True)


def tags_in(cluster: Cluster) -> dict[str, str]:
    """The images that a kept cluster runs with."""
    path = "--output=jsonpath={.items[*].spec.containers[*].image}"
    images = cluster.kubectl("get", "pods", "--all-namespaces", path).split()
    return dict(image.removeprefix("localhost/").split(":") for image in images)


@pytest.fixture(scope="session")
def cluster(product: Product) -> Cluster:
    return Cluster(NAME)


@pytest.fixture
def slurm(cluster: Cluster) -> Iterator[Slurm]:
    """Slurm with two idle workers; a test that changes it leaves it so."""
    whole = Slurm(cluster)
    whole.wait_until_idle(WORKERS, within=180)
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
