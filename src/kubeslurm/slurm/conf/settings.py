"""What the operator has to know about slurm.conf: merging, room for nodes, and what a reconfigure cannot change."""

from collections.abc import Mapping

from kubeslurm.slurm.conf.lint import is_record, lint
from kubeslurm.slurm.conf.problem import Problem
from kubeslurm.slurm.conf.text import Entry, Pair, logical_lines, parse, values

__all__ = [
    "Entry",
    "Pair",
    "Problem",
    "at_start",
    "checksum",
    "lint",
    "max_node_count",
    "merged",
    "needs_restart",
    "parse",
    "user_values",
    "values",
]

SMALLEST_NODE_COUNT = 1024
LARGEST_NODE_COUNT = 65533

# A reconfigure refuses to change ClusterName, SelectType and SlurmUser and keeps listening at the old SlurmctldPort. A
# changed StateSaveLocation would start with no jobs. The others Slurm documents as read at start only.
RESTART_KEYS = (
    "AuthType",
    "ClusterName",
    "CredType",
    "MaxNodeCount",
    "SelectType",
    "SlurmUser",
    "SlurmctldPort",
    "StateSaveLocation",
)
# A reconfigure takes another topology.yaml, but goes on with the old one when there is none any more.
RESTART_FILES = ("topology.yaml",)


def user_values(extra: str) -> dict[str, str]:
    """Settings in a user's extra configuration as merging sees them: one per line, the last wins, none with blanks."""
    found: dict[str, str] = {}
    for _, line in logical_lines(extra.replace("\r", "")):
        name, separator, value = line.partition("=")
        if separator and " " not in value.strip():
            found[name.strip().lower()] = value.strip()
    return found


def merged(extra: str, required: Mapping[str, str]) -> list[str]:
    """Lines that bring together comma lists set by both sides, for the end of the file where they win.

    `required` holds our own values by key. On equal option names ours stands, because the cluster needs it.
    """
    theirs = user_values(extra)
    lines = []
    for name in sorted(required):
        if name.lower() not in theirs:
            continue
        options: dict[str, str] = {}
        for option in [*theirs[name.lower()].lower().split(","), *required[name].split(",")]:
            if option.strip():
                options[option.strip().partition("=")[0]] = option.strip()
        lines.append(f"{name}={','.join(sorted(options.values()))}")
    return lines


def max_node_count(needed: int, current: int = 0) -> int:
    """Room for nodes: doubling from 1,024 until `needed` fits, never below `current`.

    Every change costs a restart of slurmctld, and every slot costs memory; so it grows rarely and does not shrink.
    """
    count = max(SMALLEST_NODE_COUNT, current)
    while count < needed and count < LARGEST_NODE_COUNT:
        count *= 2
    return min(count, LARGEST_NODE_COUNT)


def at_start(files: Mapping[str, str]) -> dict[str, str]:
    """What slurmctld takes from its files only at its start: settings, and whether there is a file at all."""
    found = values([entry for entry in parse(files.get("slurm.conf", "")) if not is_record(entry)])
    settings = {name: found.get(name.lower(), "") for name in RESTART_KEYS}
    return settings | {name: "there" for name in RESTART_FILES if name in files}


def needs_restart(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """The settings and files that differ and that only a restart of slurmctld brings into force."""
    before, after = at_start(old), at_start(new)
    return [name for name in (*RESTART_KEYS, *RESTART_FILES) if before.get(name) != after.get(name)]


def checksum(text: str) -> int:
    """The number by which Slurm tells two slurm.conf apart; `SlurmClient.conf` reports that of the live one."""
    value = 0
    for byte in text.encode():
        # Slurm adds each byte as a signed char.
        value ^= (byte << 8) if byte < 128 else (0xFFFF0000 | (byte << 8))
        value = ((value << 8) ^ _CRC[(value >> 8) & 0xFF]) & 0xFFFFFFFF
    return value


def _crc_row(byte: int) -> int:
    value = byte << 8
    for _ in range(8):
        value = (value << 1) ^ (0x1021 if value & 0x8000 else 0)
    return value ^ (byte << 16)


_CRC = tuple(_crc_row(byte) for byte in range(256))
