"""Slurm clusters on Kubernetes."""
