"""Slurm: REST clients, nodes and jobs as stores, tokens, configuration files."""
