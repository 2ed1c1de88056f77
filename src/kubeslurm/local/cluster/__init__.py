"""One Kubernetes cluster on this machine."""
