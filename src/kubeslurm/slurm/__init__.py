"""The Slurm side: REST client, snapshot, tokens, configuration text."""
