"""The same cluster as the tests of `kubeslurm up` have."""

from tests.up.conftest import cluster, first_output, machine

__all__ = ["cluster", "first_output", "machine"]
