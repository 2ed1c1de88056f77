"""How requests and watches reach the API server."""
