"""A real multi-node Kubernetes on one Linux machine."""
