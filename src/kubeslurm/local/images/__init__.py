"""Container images, and what else a cluster needs that is built on this machine."""
