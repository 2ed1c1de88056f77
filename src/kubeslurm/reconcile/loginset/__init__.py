"""The controller of the kind LoginSet."""
