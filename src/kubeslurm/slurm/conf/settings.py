"""Settings of slurm.conf: merging, MaxNodeCount, what a reconfigure cannot change, and Slurm's checksum."""

from collections.abc import Mapping

from kubeslurm.slurm.conf.lint import is_record
from kubeslurm.slurm.conf.text import logical_lines, parse, values

SMALLEST_NODE_COUNT = 1024
LARGEST_NODE_COUNT = 65533

# A reconfigure refuses to change ClusterName, SelectType and SlurmUser, and keeps the old SlurmctldPort. A changed
# StateSaveLocation would start without jobs. The others are documented as read at start only.
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
# A reconfigure reads a changed topology.yaml, but keeps the old topology when the file is gone.
RESTART_FILES = ("topology.yaml",)


def merged(extra: str, required: Mapping[str, str]) -> list[str]:
    """Lines that merge comma lists set by both sides, for the end of the file, where they win.

    `required` has the operator's values by key. Of two options with one name the operator's wins: the cluster needs it.
    """
    theirs = _user_values(extra)
    lines = []
    for name in sorted(required):
        if name.lower() not in theirs:
            continue
        options: dict[str, str] = {}
        for option in [*theirs[name.lower()].split(","), *required[name].split(",")]:
            key, equals, value = option.strip().partition("=")
            if key:
                # Names are the same in any case; values, such as paths and claims, are not.
                options[key.lower()] = f"{key.lower()}{equals}{value}"
        lines.append(f"{name}={','.join(sorted(options.values()))}")
    return lines


def max_node_count(needed: int, current: int = 0) -> int:
    """MaxNodeCount: doubled from 1,024 until `needed` fits, never below `current`.

    Every change costs a restart of slurmctld, and every slot costs memory: so it grows in large steps.
    """
    count = max(SMALLEST_NODE_COUNT, current)
    while count < needed and count < LARGEST_NODE_COUNT:
        count *= 2
    return min(count, LARGEST_NODE_COUNT)


def at_start(files: Mapping[str, str]) -> dict[str, str]:
    """What slurmctld reads only at its start: settings, and whether a file exists."""
    found = values([entry for entry in parse(files.get("slurm.conf", "")) if not is_record(entry)])
    settings = {name: found.get(name.lower(), "") for name in RESTART_KEYS}
    return settings | {name: "there" for name in RESTART_FILES if name in files}


def needs_restart(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """The settings and files that differ and that only a restart of slurmctld applies."""
    before, after = at_start(old), at_start(new)
    return [name for name in (*RESTART_KEYS, *RESTART_FILES) if before.get(name) != after.get(name)]


def checksum(text: str) -> int | None:
    """Slurm's checksum of a slurm.conf, comments included; None when it includes files, which count as well.

    `SlurmClient.conf` returns the checksum of the configuration that slurmctld runs with.
    """
    if any(pair.key == "include" for entry in parse(text) for pair in entry.pairs):
        return None
    value = 0
    for byte in text.encode():
        # Slurm uses each byte as a signed char.
        value ^= (byte << 8) if byte < 128 else (0xFFFF0000 | (byte << 8))
        value = ((value << 8) ^ _CRC[(value >> 8) & 0xFF]) & 0xFFFFFFFF
    return value


def _user_values(extra: str) -> dict[str, str]:
    """Settings of a user's extra configuration that can be merged: one per line without blanks, the last one wins."""
    found: dict[str, str] = {}
    for _, line in logical_lines(extra.replace("\r", "")):
        name, separator, value = line.partition("=")
        if separator and " " not in value.strip():
            found[name.strip().lower()] = value.strip()
    return found


def _crc_row(byte: int) -> int:
    value = byte << 8
    for _ in range(8):
        value = (value << 1) ^ (0x1021 if value & 0x8000 else 0)
    return value ^ (byte << 16)


_CRC = tuple(_crc_row(byte) for byte in range(256))
