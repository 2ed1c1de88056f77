"""`kubeslurm up` and `kubeslurm down`: the whole installation."""
