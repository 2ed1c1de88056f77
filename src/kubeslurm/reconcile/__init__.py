"""One reconciler per kind: the only place that joins observe, decide, build, apply and report."""
