"""Which lines of the accepted configuration stay although nothing asks for them any more.

slurmctld ends the jobs of a partition, running and pending, when a reconfigure finds its line gone. So a line stays
until workers and jobs have left it, and while it is not known whether they have.
"""

from collections.abc import Iterable, Mapping
from enum import Enum

import msgspec

from kubeslurm.slurm.conf.records import NODE, NODE_SET, PARTITION, Record, closed, without_default


class Cause(Enum):
    """Why a line stays."""

    WORKERS = "workers"  # workers of a NodeSet that does not exist any more
    JOBS = "jobs"
    CLOSING = "closing"  # a job could still be submitted
    UNKNOWN = "unknown"  # Slurm cannot be asked
    NEEDED = "needed"  # by another line that stays


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """Who uses the lines of the accepted configuration."""

    served: frozenset[str] | None = None  # NodeSets that workers belong to; None: Slurm cannot be asked
    jobs: Mapping[str, int | None] = {}  # jobs that are not over by partition; None: not known
    running: bool = False  # slurmctld runs with the accepted configuration


class KeptLine(msgspec.Struct, frozen=True):
    """A line that stays."""

    record: Record
    cause: Cause
    jobs: int = 0


def dropped(old: Iterable[Record], new: Iterable[Record]) -> list[Record]:
    """Records of the old configuration that the new one does not have."""
    wanted = {(record.kind, name) for record in new for name in record.defines}
    return [record for record in old if all((record.kind, name) not in wanted for name in record.defines)]


def keep(gone: list[Record], new: list[Record], use: Use) -> tuple[KeptLine, ...]:
    """The lines that stay of those that are gone from the new configuration."""
    sets = {record.name for record in gone if record.kind == NODE_SET}
    places = {(record.kind, record.name): place for place, record in enumerate(gone)}
    found = [_partition(record, sets, use) for record in gone if record.kind == PARTITION]
    partitions = [line for line in found if line is not None]
    if any(record.is_default for record in new if record.kind == PARTITION):
        partitions = [msgspec.structs.replace(each, record=without_default(each.record)) for each in partitions]
    kept_sets = [
        KeptLine(record, Cause.UNKNOWN if use.served is None else Cause.WORKERS)
        for record in gone
        if record.kind == NODE_SET and (use.served is None or record.name in use.served)
    ]
    kept = [*kept_sets, *partitions]
    # In their old order, so that a configuration in which all lines stay is no other one.
    return tuple(sorted([*_needed(kept, gone), *kept], key=lambda line: places[line.record.kind, line.record.name]))


def _partition(record: Record, sets: set[str], use: Use) -> KeptLine | None:
    # Its NodeSets went with it, so nobody asked for the end of the partition itself.
    left_behind = bool(record.nodes) and sets.issuperset(record.nodes)
    jobs = use.jobs.get(record.name)
    if left_behind and use.served is not None and not use.served.isdisjoint(record.nodes):
        return KeptLine(record, Cause.WORKERS, jobs or 0)
    if jobs is None or use.served is None:
        return KeptLine(record, Cause.UNKNOWN)
    if jobs:
        return KeptLine(closed(record), Cause.JOBS, jobs)
    # Where no worker is left no job can begin.
    if left_behind or (record.is_closed and use.running):
        return None
    return KeptLine(closed(record), Cause.CLOSING)


def _needed(kept: list[KeptLine], gone: list[Record]) -> list[KeptLine]:
    """Lines that others refer to: without its nodes a partition would not be accepted."""
    found: list[KeptLine] = []
    have = {name for line in kept for name in line.record.defines if line.record.kind != PARTITION}
    named = {name for line in kept for name in line.record.nodes}
    for kind in (NODE_SET, NODE):
        for record in gone:
            if record.kind == kind and not have.issuperset(record.defines) and not named.isdisjoint(record.defines):
                found.append(KeptLine(record, Cause.NEEDED))
                named.update(record.nodes)
    return found
