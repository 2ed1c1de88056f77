"""Mistakes in Slurm's configuration files that are found without starting a daemon.

slurmctld or slurmd would refuse to start with every error that is reported here. The others are found by a trial of the
real slurmctld. Which keys slurm.conf may have depends on the release, so one that is not known here is a remark; in
cgroup.conf and gres.conf, which no trial reads, it is an error.
"""

import difflib
import re
from collections.abc import Iterator, Mapping

from kubeslurm.slurm import hostlist
from kubeslurm.slurm.conf import keys
from kubeslurm.slurm.conf.problem import Problem
from kubeslurm.slurm.conf.text import Entry, Pair, parse, values
from kubeslurm.slurm.conf.topology import lint_topology

_NUMBER = re.compile(r"^(\d+|0x[0-9a-f]+|unlimited|infinite)$", re.IGNORECASE)
_FLAG = re.compile(r"^(yes|no|up|down|true|false|1|0)$", re.IGNORECASE)
_CGROUP_PLUGINS = ("autodetect", "disabled", "cgroup/v1", "cgroup/v2")


def lint(files: Mapping[str, str]) -> list[Problem]:
    """Problems in a set of configuration files by name, errors first."""
    found: list[Problem] = []
    if "slurm.conf" in files:
        found += _slurm_conf(files)
    if "cgroup.conf" in files:
        found += _flat("cgroup.conf", files["cgroup.conf"], keys.CGROUP)
        found += _cgroup_conf(files)
    if "gres.conf" in files:
        found += _flat("gres.conf", files["gres.conf"], keys.GRES)
    if "topology.yaml" in files:
        found += lint_topology(files["topology.yaml"])
    return sorted(found, key=lambda problem: problem.severity)


def _slurm_conf(files: Mapping[str, str]) -> Iterator[Problem]:
    name = "slurm.conf"
    entries = parse(files[name])
    for entry in entries:
        yield from _line(name, entry, files)
    plain = [entry for entry in entries if not is_record(entry)]
    settings = values(plain)
    for key, spelling in (("clustername", "ClusterName"), ("slurmctldhost", "SlurmctldHost")):
        if key not in settings:
            yield Problem(name, 0, f"{spelling} is missing")
    yield from _partitions(name, entries)
    yield from _repeated(name, entries)
    stepmgr = "enable_stepmgr" in settings.get("slurmctldparameters", "").lower()
    if stepmgr and "contain" not in settings.get("prologflags", "").lower():
        yield Problem(name, _line_of(plain, "slurmctldparameters"), "enable_stepmgr needs PrologFlags=Contain")
    plugin = settings.get("topologyplugin", "")
    if plugin in ("topology/tree", "topology/block") and files.keys().isdisjoint(("topology.conf", "topology.yaml")):
        message = f"TopologyPlugin={plugin} needs a topology.yaml or topology.conf: slurmctld waits for it for a minute"
        yield Problem(name, _line_of(plain, "topologyplugin"), message)


def _line(name: str, entry: Entry, files: Mapping[str, str]) -> Iterator[Problem]:
    if entry.rest:
        yield Problem(name, entry.line, f"cannot read {entry.rest!r}: Key=Value is expected")
    first = entry.first
    if first is None:
        return
    if first.key == "include":
        yield from _include(name, entry.line, first.value, files)
        return
    record = keys.RECORDS.get(first.key)
    for pair in entry.pairs:
        yield from _pair(name, entry.line, pair, keys.SLURM if record is None else record)


def _include(name: str, line: int, target: str, files: Mapping[str, str]) -> Iterator[Problem]:
    if "/" in target:
        message = f"Include {target}: files outside the configuration directory are not sent to the workers"
        yield Problem(name, line, message, "warning")
    elif target not in files:
        yield Problem(name, line, f"Include {target}: there is no such file among the configuration files")


def _pair(name: str, line: int, pair: Pair, known: Mapping[str, str]) -> Iterator[Problem]:
    if pair.key not in known:
        yield Problem(name, line, f"unknown key {pair.name}{_suggestion(pair.key, known)}", "warning")
    elif not pair.value:
        yield Problem(name, line, f"{pair.name} has no value")
    elif pair.key in keys.NUMBERS and not _NUMBER.match(pair.value):
        yield Problem(name, line, f"{pair.name}={pair.value}: a whole number is expected")
    elif pair.key in keys.FLAGS and not _FLAG.match(pair.value):
        yield Problem(name, line, f"{pair.name}={pair.value}: YES or NO is expected")


def _suggestion(key: str, known: Mapping[str, str]) -> str:
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.8)
    return f"; did you mean {known[near[0]]}?" if near else ""


def _partitions(name: str, entries: list[Entry]) -> Iterator[Problem]:
    """A partition may only name nodes and NodeSets of this file; dynamic nodes belong to a NodeSet."""
    sets = {entry.get("nodeset") for entry in entries if entry.get("nodeset")}
    nodes = {node for entry in entries if (text := entry.get("nodename")) for node in _expanded(text)}
    for entry in entries:
        wanted = entry.get("nodes") if entry.get("partitionname") else None
        for part in _expanded(wanted or ""):
            if part.lower() not in ("all", "default") and part not in sets and part not in nodes:
                partition = entry.get("partitionname")
                yield Problem(name, entry.line, f"partition {partition}: {part} is neither a NodeSet nor a node here")


def _repeated(name: str, entries: list[Entry]) -> Iterator[Problem]:
    seen: dict[tuple[str, str], int] = {}
    for entry in entries:
        first = entry.first
        if first is None or first.key not in ("partitionname", "nodeset") or first.value.lower() == "default":
            continue
        before = seen.setdefault((first.key, first.value), entry.line)
        if before != entry.line:
            yield Problem(name, entry.line, f"{first.name}={first.value} was already given in line {before}", "warning")


def _flat(name: str, text: str, known: Mapping[str, str]) -> Iterator[Problem]:
    for entry in parse(text):
        if entry.rest:
            yield Problem(name, entry.line, f"cannot read {entry.rest!r}: Key=Value is expected")
        for pair in entry.pairs:
            if pair.key not in known and pair.key != "include":
                yield Problem(name, entry.line, f"unknown key {pair.name}{_suggestion(pair.key, known)}")


def _cgroup_conf(files: Mapping[str, str]) -> Iterator[Problem]:
    entries = parse(files["cgroup.conf"])
    plugin = values(entries).get("cgroupplugin", "autodetect").lower()
    line = _line_of(entries, "cgroupplugin")
    if plugin not in _CGROUP_PLUGINS:
        yield Problem("cgroup.conf", line, f"CgroupPlugin={plugin}: one of {', '.join(_CGROUP_PLUGINS)} is expected")
    if plugin != "disabled" or "slurm.conf" not in files:
        return
    settings = values([entry for entry in parse(files["slurm.conf"]) if not is_record(entry)])
    # By default Slurm tracks processes by cgroup and has no task plugin.
    chosen = {
        "ProctrackType": settings.get("proctracktype", "proctrack/cgroup"),
        "TaskPlugin": settings.get("taskplugin", ""),
    }
    for name, value in chosen.items():
        if "cgroup" in value:
            message = f"CgroupPlugin=disabled, but {name} is {value}: workers will not start"
            yield Problem("cgroup.conf", line, message)


def is_record(entry: Entry) -> bool:
    """Whether the line describes a node, partition or the like, not a setting of the cluster."""
    return entry.first is not None and entry.first.key in keys.RECORDS


def _expanded(text: str) -> list[str]:
    try:
        return hostlist.expand(text)
    except ValueError:
        return []


def _line_of(entries: list[Entry], key: str) -> int:
    return next((entry.line for entry in reversed(entries) if entry.get(key) is not None), 0)
