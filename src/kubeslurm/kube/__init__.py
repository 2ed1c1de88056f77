"""The Kubernetes client: requests, reflectors and their stores, leader election, events."""
