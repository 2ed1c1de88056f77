"""One cluster that all tests of `kubeslurm up` share."""

from collections.abc import Iterator

import pytest

from kubeslurm.cli.up import login
from tests.support.kubernetes import Kubernetes
from tests.up.support import CONTEXT, NAME, up


@pytest.fixture(scope="session")
def cluster() -> Iterator[Kubernetes]:
    """A cluster that does not exist before these tests, and is deleted after them."""
    cluster = Kubernetes(NAME)
    cluster.down(purge=True)
    yield cluster
    cluster.close()
    cluster.down(purge=True)
    login.for_context(CONTEXT).delete()


@pytest.fixture(scope="session")
def first_output(cluster: Kubernetes) -> str:
    """The output of the first `up`."""
    return up(cluster, "--name", NAME, "--nodes", "2")
