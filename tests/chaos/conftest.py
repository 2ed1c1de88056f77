"""The same cluster as the end-to-end tests have."""

from tests.e2e.conftest import cluster, last_words, product, slurm

__all__ = ["cluster", "last_words", "product", "slurm"]
