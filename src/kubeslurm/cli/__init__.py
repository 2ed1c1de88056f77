"""The kubeslurm command."""

from kubeslurm.cli.app import main

__all__ = ["main"]
