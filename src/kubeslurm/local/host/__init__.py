"""What the local cluster needs of this machine."""
