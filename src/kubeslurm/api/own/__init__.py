"""The kinds of our own group, kubeslurm.dev/v1alpha1: one module each, listed in `api/kinds.py`."""
