"""The HTTP servers of a process."""
