"""Settings of the processes: what there is, and how they are read."""
