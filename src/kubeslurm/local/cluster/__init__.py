"""One cluster on this machine."""
