"""One cluster that all tests of `kubeslurm up` share; failures are shown as those of the end-to-end tests."""

from collections.abc import Iterator

import pytest

from kubeslurm.cli.up import login
from tests.e2e.conftest import pytest_runtest_makereport
from tests.support.kubernetes import Kubernetes
from tests.up.support import CONTEXT, NAME, Machine

__all__ = ["cluster", "first_output", "machine", "pytest_runtest_makereport"]


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
def machine(cluster: Kubernetes) -> Machine:
    return Machine(cluster)


@pytest.fixture
def first_output(machine: Machine) -> str:
    """The output of the `up` that has installed Slurm."""
    return machine.install()
