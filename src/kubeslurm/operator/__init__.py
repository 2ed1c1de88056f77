"""Composition root: settings, wiring, processes."""
