"""The same cluster as the end-to-end tests have."""

from tests.e2e.conftest import cluster, product, pytest_runtest_makereport, slurm

__all__ = ["cluster", "product", "pytest_runtest_makereport", "slurm"]
