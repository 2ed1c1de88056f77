"""Requests and watches on their way to the API server."""
