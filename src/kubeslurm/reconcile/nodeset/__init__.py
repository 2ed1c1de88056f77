"""The controller of the kind NodeSet."""
