"""Slurm's configuration files: their text, their keys, and what is wrong with them."""

from kubeslurm.slurm.conf.lint import lint
from kubeslurm.slurm.conf.problem import Problem
from kubeslurm.slurm.conf.settings import (
    SMALLEST_NODE_COUNT,
    at_start,
    checksum,
    max_node_count,
    merged,
    needs_restart,
    user_values,
)
from kubeslurm.slurm.conf.text import Entry, Pair, parse, values

__all__ = [
    "SMALLEST_NODE_COUNT",
    "Entry",
    "Pair",
    "Problem",
    "at_start",
    "checksum",
    "lint",
    "max_node_count",
    "merged",
    "needs_restart",
    "parse",
    "user_values",
    "values",
]
