"""Decisions about the workers of a NodeSet."""
