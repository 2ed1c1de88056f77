"""The same clusters as the end-to-end tests have."""

from tests.e2e.conftest import cluster, product, pytest_runtest_makereport, slurm
from tests.e2e.users.conftest import plain, site

__all__ = ["cluster", "plain", "product", "pytest_runtest_makereport", "site", "slurm"]
