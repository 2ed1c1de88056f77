"""Container images built on this machine."""
