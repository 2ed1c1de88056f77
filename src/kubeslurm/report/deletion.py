"""What an object says whose deletion waits for NodeSets."""

from kubeslurm.api import names
from kubeslurm.report.conditions import Finding, progressing
from kubeslurm.report.reasons import Reason


def held(why: str) -> Finding:
    """Why the deletion waits, and both ways out: a deletion cannot be taken back."""
    message = (
        f"its deletion waits: {why}. Delete them, or set the annotation {names.FORCE_DELETE}=true to go at once; "
        "if it was deleted by mistake, set the annotation and create it again"
    )
    return progressing(Reason.DELETION_BLOCKED, message)
