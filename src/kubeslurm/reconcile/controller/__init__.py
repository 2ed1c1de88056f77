"""The controller of the kind Controller."""
