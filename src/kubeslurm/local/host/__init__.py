"""How the local cluster uses this machine: programs, kernel, control groups, files."""
