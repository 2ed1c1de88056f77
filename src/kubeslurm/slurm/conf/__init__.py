"""Slurm's configuration files: how they are read, merged and checked."""

from kubeslurm.slurm.conf.lint import lint
from kubeslurm.slurm.conf.problem import Problem
from kubeslurm.slurm.conf.settings import (
    SMALLEST_NODE_COUNT,
    at_start,
    checksum,
    max_node_count,
    merged,
    needs_restart,
)
from kubeslurm.slurm.conf.text import parse, values, written

__all__ = [
    "SMALLEST_NODE_COUNT",
    "Problem",
    "at_start",
    "checksum",
    "lint",
    "max_node_count",
    "merged",
    "needs_restart",
    "parse",
    "values",
    "written",
]
