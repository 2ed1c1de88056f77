"""Findings about lines of slurm.conf that stay because workers or jobs still use them."""

from kubeslurm.decide.config.kept_lines import Cause, KeptLine
from kubeslurm.report.conditions import Finding, progressing
from kubeslurm.report.reasons import Reason
from kubeslurm.slurm.conf.records import PARTITION

SHOWN_LINES = 3


def in_use(kept: tuple[KeptLine, ...]) -> Finding | None:
    """What is no longer desired and stays, why, and what would end it."""
    told = [line for line in kept if line.cause is not Cause.NEEDED]
    # What is said of a partition holds for the NodeSet that it consists of.
    partitions = [line for line in told if line.record.kind == PARTITION]
    named = {name for line in partitions for name in line.record.nodes}
    shown = [*partitions, *(line for line in told if line not in partitions and line.record.name not in named)]
    if not shown:
        return None
    texts = [_text(line) for line in shown[:SHOWN_LINES]]
    more = [f"and {len(shown) - SHOWN_LINES} more"] if len(shown) > SHOWN_LINES else []
    return progressing(Reason.PARTITION_IN_USE, "; ".join([*texts, *more]))


def _text(line: KeptLine) -> str:
    name = line.record.name
    what = f"partition {name}" if line.record.kind == PARTITION else f"NodeSet {name}"
    match line.cause:
        case Cause.WORKERS:
            return f"{what} is gone from the objects, and its workers still run: it stays until they are gone"
        case Cause.JOBS:
            return (
                f"{what} is no longer desired and still has jobs ({line.jobs}): it takes no new ones and stays until "
                f"they end; see squeue --partition={name}, and cancel or move them to be rid of it now"
            )
        case Cause.CLOSING:
            return f"{what} is no longer desired: it is closed for new jobs first, then removed"
    return f"{what} is no longer desired, and Slurm cannot be asked whether jobs use it: it stays until Slurm answers"
