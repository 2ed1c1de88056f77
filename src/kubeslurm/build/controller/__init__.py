"""slurmctld: its configuration, its objects, the trial of a configuration."""
