"""Whether slurmctld and its workers really run with a configuration, by what Slurm says of itself."""

from collections.abc import Iterable

import msgspec

from kubeslurm.slurm.rest.models import Node, RunningConf


class Running(msgspec.Struct, frozen=True):
    """What slurmctld says about the configuration it has read: a checksum of slurm.conf, and when it read it."""

    checksum: int
    read_at: int

    @classmethod
    def of(cls, live: RunningConf | None) -> "Running | None":
        """From the answer to the REST call `conf`; None where Slurm does not offer it."""
        return cls(checksum=live.checksum, read_at=live.read_at) if live else None


def has_read(expected: int | None, before: Running | None, now: Running) -> bool:
    """Whether slurmctld has read its files since `before` and found the expected checksum."""
    again = before is None or now.read_at > before.read_at
    return again and (expected is None or expected == now.checksum)


def late_workers(nodes: Iterable[Node], read_at: int) -> list[str]:
    """Workers that answer but have not restarted their slurmd since slurmctld read its configuration."""
    return sorted(node.name for node in nodes if _follows(node) and (node.slurmd_start_time.value or 0) < read_at)


def _follows(node: Node) -> bool:
    return not {"DOWN", "NOT_RESPONDING", "EXTERNAL", "FUTURE", "POWERED_DOWN", "CLOUD"} & set(node.state)
