"""Whether slurmctld and its workers really run with a configuration, by what Slurm says of itself."""

from collections.abc import Iterable

import msgspec

from kubeslurm.slurm import conf
from kubeslurm.slurm.rest.models import LiveConf, Node

_WORD = 0xFFFFFFFF
_TOP = 0x8000
_POLYNOMIAL = 4129


class Running(msgspec.Struct, frozen=True):
    """What slurmctld says about the configuration it has read: a checksum of slurm.conf, and when it read it."""

    checksum: int
    read_at: int

    @classmethod
    def of(cls, live: LiveConf | None) -> "Running | None":
        """From the answer to the REST call `conf`; None where Slurm does not offer it."""
        return cls(checksum=live.checksum, read_at=live.read_at) if live else None


def checksum(slurm_conf: str) -> int | None:
    """Slurm's own checksum of a slurm.conf (comments count); None when included files are part of it."""
    if any(pair.key == "include" for entry in conf.parse(slurm_conf) for pair in entry.pairs):
        return None
    value = 0
    for byte in slurm_conf.encode():
        # Slurm adds signed characters.
        value = (value ^ ((byte - 256 if byte > 127 else byte) << 8)) & _WORD
        for _ in range(8):
            value = ((value << 1) ^ (_POLYNOMIAL if value & _TOP else 0)) & _WORD
    return value


def has_read(wanted: int | None, before: Running | None, now: Running) -> bool:
    """Whether slurmctld has read its files since `before` and found in them what is wanted."""
    again = before is None or now.read_at > before.read_at
    return again and (wanted is None or wanted == now.checksum)


def laggards(nodes: Iterable[Node], read_at: int) -> list[str]:
    """Workers that answer but have not restarted their slurmd since slurmctld read its configuration."""
    return sorted(node.name for node in nodes if _follows(node) and (node.slurmd_start_time.value or 0) < read_at)


def _follows(node: Node) -> bool:
    return not {"DOWN", "NOT_RESPONDING", "EXTERNAL", "FUTURE", "POWERED_DOWN", "CLOUD"} & set(node.state)
