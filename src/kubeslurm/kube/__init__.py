"""The Kubernetes side: client, reflector, leader election, events."""
