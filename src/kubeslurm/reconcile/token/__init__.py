"""The controller of the kind Token."""
