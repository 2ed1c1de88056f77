"""The controller that keeps the connections to Slurm clusters."""
