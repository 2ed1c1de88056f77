"""Writes to Slurm about the nodes and jobs of workers."""
