"""Slurm's REST API: slurmctld under `/slurm/`, slurmdbd under `/slurmdb/`."""
