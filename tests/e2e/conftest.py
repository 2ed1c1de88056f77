"""One Kubernetes cluster with the operator and a small Slurm cluster for each test process, shared by all its tests.

It is brought up by the same code as `kubeslurm up`, and it stays up while KUBESLURM_KEEP is set.
"""

import os
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from kubeslurm.api.meta import Tree
from kubeslurm.cli.up import images, releases
from kubeslurm.cli.up.access import local_access
from kubeslurm.cli.up.installation import Installation
from kubeslurm.local.host import cache
from kubeslurm.local.host.progress import Progress
from kubeslurm.local.host.tasks import Tasks
from tests.support import audit, evidence
from tests.support.kubernetes import Kubernetes
from tests.support.places import bring_home, prefer
from tests.support.settled import put_back, wait_for_webhook, wait_until_settled
from tests.support.slurm import Slurm

NAME = "-".join(filter(None, (os.environ.get("KUBESLURM_E2E", "e2e"), os.environ.get("PYTEST_XDIST_WORKER"))))
WORKERS = 2
# A worker that is deleted under its job waits for it until its time is over.
SHORT: Tree = {"nodesetDefaults": {"podSpec": {"terminationGracePeriodSeconds": 5}}}
REQUESTS = Path(__file__).parents[2] / ".requests"  # what the product asked of each API server, for tests/rights


class ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """One process takes a whole file, or a whole folder of these.

    The second Slurm cluster of tests/e2e/users is expensive. Scopes with many tests come first: the long tests of
    tests/e2e/faults, with few in each file, would come last, and one process would wait for the other.
    """

    FOLDERS = ("users", "faults")

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return next((folder for folder in self.FOLDERS if f"/{folder}/" in file), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    return ByFile(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds what the cluster shows at the moment of a failure, before fixtures put things back."""
    report = yield
    cluster = getattr(item, "funcargs", {}).get("cluster")
    if report.failed and cluster is not None:
        report.sections.append(("Cluster", evidence.of(cluster)))
    return report


@pytest.fixture(scope="session")
def home(pytestconfig: pytest.Config) -> str:
    """The Kubernetes node that slurmctld was asked to be on; empty for any."""
    return str(pytestconfig.getoption("slurmctld_on"))


@pytest.fixture(scope="session")
def product(home: str) -> Iterator[Installation]:
    """The product as a user gets it: cluster, images, operator, Slurm with two workers."""
    keep = bool(os.environ.get("KUBESLURM_KEEP"))
    cluster = Kubernetes(NAME)
    if keep and cluster.running:
        yield Installation(local_access(cluster), tags_in(cluster))
        return
    cluster.down(purge=True)
    with Progress() as progress:
        with cache.lock("end-to-end", on_wait=lambda: progress.print("another test process builds the images")):
            images.build(images.groups(), tasks=Tasks(), progress=progress)
        whole = Installation.local(cluster, None, progress)
        whole.install(releases.merge(SHORT, prefer(home) if home else {}), progress)
    try:
        yield whole
    finally:
        if not keep:
            keep_requests(cluster)
            cluster.down(purge=True)


def keep_requests(cluster: Kubernetes) -> None:
    """The whole audit log."""
    folder = REQUESTS / NAME
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for part in audit.parts_of(cluster):
        shutil.copy(part, folder)


def tags_in(cluster: Kubernetes) -> dict[str, str]:
    """The images that a kept cluster runs with."""
    path = "--output=jsonpath={.items[*].spec.containers[*].image}"
    images = cluster.kubectl("get", "pods", "--all-namespaces", path).split()
    return dict(image.removeprefix("localhost/").split(":") for image in images)


@pytest.fixture(scope="session")
def cluster(product: Installation) -> Iterator[Kubernetes]:
    """The cluster, with an admission that answers: until then nobody can write a Slurm object."""
    found = Kubernetes(NAME)
    wait_for_webhook(found)
    yield found
    found.close()


@pytest.fixture
def slurm(cluster: Kubernetes, home: str) -> Iterator[Slurm]:
    """Slurm with two idle workers, before and after the test; what it has left behind is ended also when it failed."""
    whole = Slurm(cluster)
    if home:
        bring_home(whole, home)
    wait_until_settled(whole, WORKERS)
    yield whole
    put_back(whole, WORKERS)
    wait_until_settled(whole, WORKERS)
