"""Login pods and what their sshd reads."""
