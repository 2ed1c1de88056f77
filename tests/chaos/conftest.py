"""The same clusters as the end-to-end tests have."""

from tests.e2e.conftest import cluster, home, product, pytest_runtest_makereport, slurm
from tests.e2e.users.conftest import installed_site, plain, site

__all__ = ["cluster", "home", "installed_site", "plain", "product", "pytest_runtest_makereport", "site", "slurm"]
