"""Records of slurm.conf that jobs depend on: nodes, NodeSets and partitions."""

import re
from collections.abc import Iterator, Mapping

import msgspec

from kubeslurm.slurm import hostlist
from kubeslurm.slurm.conf.text import Entry, logical_lines, parse

NODE, NODE_SET, PARTITION = "nodename", "nodeset", "partitionname"
KINDS = (NODE, NODE_SET, PARTITION)
SLURM_CONF = "slurm.conf"
# Where the files of a configuration are mounted; an Include may name them with it.
FOLDER = "/etc/slurm/"

_STATE_AND_DEFAULT = re.compile(r"(?<!\S)(?:State|Default)\s*=\s*\S+\s*", re.IGNORECASE)
_DEFAULT = re.compile(r"(?<!\S)Default\s*=\s*\S+\s*", re.IGNORECASE)
# In these states a partition takes no new jobs.
_CLOSED = ("drain", "inactive")


class Line(msgspec.Struct, frozen=True):
    """One logical line of slurm.conf or of a file that it includes."""

    file: str
    number: int
    text: str

    @property
    def entry(self) -> Entry:
        return parse(self.text)[0]


class Record(msgspec.Struct, frozen=True):
    """One node, NodeSet or partition line."""

    kind: str
    name: str
    text: str

    @property
    def nodes(self) -> tuple[str, ...]:
        """What it consists of: nodes and NodeSets for a partition, and nodes for a NodeSet."""
        return expanded(self.get("nodes"))

    @property
    def defines(self) -> tuple[str, ...]:
        """The names by which other records refer to it."""
        return expanded(self.name) if self.kind == NODE else (self.name,)

    @property
    def is_closed(self) -> bool:
        """Whether this partition takes no new jobs."""
        return self.get("state").lower() in _CLOSED

    @property
    def is_default(self) -> bool:
        return self.get("default").lower() in ("yes", "true", "1", "up")

    def get(self, key: str) -> str:
        """The value of one of its settings; empty when it has none."""
        return parse(self.text)[0].get(key) or ""


def lines(files: Mapping[str, str], name: str = SLURM_CONF, above: tuple[str, ...] = ()) -> Iterator[Line]:
    """The logical lines of slurm.conf in the order in which Slurm reads them, with those of included files."""
    for number, text in logical_lines(files.get(name, "")):
        line = Line(name, number, text)
        first = line.entry.first
        target = first.value.removeprefix(FOLDER) if first and first.key == "include" else ""
        if target in files and target not in (name, *above):
            yield from lines(files, target, (*above, name))
        else:
            yield line


def records(files: Mapping[str, str]) -> list[Record]:
    """All node, NodeSet and partition lines, without those that set defaults for others."""
    found = []
    for line in lines(files):
        first = line.entry.first
        if first is not None and first.key in KINDS and first.value.lower() != "default":
            found.append(Record(first.key, first.value, line.text))
    return found


def closed(partition: Record) -> Record:
    """The partition as one that keeps its jobs and takes no others."""
    if partition.is_closed:
        return without_default(partition)
    # Jobs in a partition that is down do not start; they shall not begin to because it is closed.
    state = "INACTIVE" if partition.get("state").lower() == "down" else "DRAIN"
    text = _STATE_AND_DEFAULT.sub("", partition.text).rstrip()
    return Record(partition.kind, partition.name, f"{text} State={state}")


def without_default(partition: Record) -> Record:
    """The partition as one that is not the default."""
    return Record(partition.kind, partition.name, _DEFAULT.sub("", partition.text).rstrip())


def expanded(text: str) -> tuple[str, ...]:
    """The names of a hostlist; none when it is not one."""
    try:
        return tuple(hostlist.expand(text))
    except ValueError:
        return ()
