"""The controller that shows drains of Slurm nodes on Kubernetes nodes."""
