"""Decisions about the configuration of a cluster."""
