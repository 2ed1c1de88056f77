"""A level-triggered controller loop that knows neither Kubernetes nor Slurm."""
