"""The kinds of slinky.slurm.net/v1beta1."""
