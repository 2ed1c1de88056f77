"""`kubeslurm up` and `kubeslurm down`."""
