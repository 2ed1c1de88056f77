"""Decisions about the Slurm nodes behind workers."""
