"""Looks at this machine: rights, kernel, disk, memory and tools. Changes nothing."""

import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

import msgspec

from kubeslurm.local import artifacts, cache

TOOLS = {  # program -> Debian package
    "buildah": "buildah",
    "ip": "iproute2",
    "mmdebstrap": "mmdebstrap",
    "mount": "mount",
    "unshare": "util-linux",
}
NEEDED_CONTROLLERS = frozenset({"cpu", "memory", "pids"})
NETFILTER = 12  # NETLINK_NETFILTER


class Machine(msgspec.Struct, frozen=True):
    """What was seen of the machine; the judgement is made from this alone."""

    root: bool
    capabilities: int
    cgroups: str  # v1, hybrid, v2, or nothing
    controllers: frozenset[str]
    filesystems: frozenset[str]
    namespaces: frozenset[str]
    network: dict[str, str]  # feature -> complaint, empty when it works
    kmsg: bool
    inotify_instances: int
    memory: int
    disk: int
    built: bool  # everything that has to be built is in the cache already
    go: tuple[int, int] | None
    missing: tuple[str, ...]  # Debian packages
    apt: bool


def look() -> Machine:
    """The facts of this machine, now."""
    layout, controllers = cgroup_layout(_read("/proc/self/mountinfo"), _read("/sys/fs/cgroup/cgroup.controllers"))
    status, memory = _read("/proc/self/status"), _read("/proc/meminfo")
    return Machine(
        root=os.geteuid() == 0,
        capabilities=int(_first(r"^CapEff:\s*(\w+)", status) or "0", 16),
        cgroups=layout,
        controllers=controllers,
        filesystems=frozenset(re.findall(r"(\S+)$", _read("/proc/filesystems"), re.MULTILINE)),
        namespaces=frozenset(os.listdir("/proc/self/ns")),
        network=_network(),
        kmsg=os.access("/dev/kmsg", os.R_OK),
        inotify_instances=int(_read("/proc/sys/fs/inotify/max_user_instances") or 0),
        memory=int(_first(r"^MemAvailable:\s*(\d+)", memory) or 0) * 1024,
        disk=_free(cache.directory()),
        built=all(entry.complete() for entry in artifacts.entries().values()),
        go=go_version(_output("go", "env", "GOVERSION")),
        missing=tuple(sorted({package for tool, package in TOOLS.items() if shutil.which(tool) is None})),
        apt=shutil.which("apt-get") is not None,
    )


def cgroup_layout(mountinfo: str, unified_controllers: str) -> tuple[str, frozenset[str]]:
    """How control groups are mounted, and which controllers they have."""
    mounts = re.findall(r" - (cgroup2?) \S+ (\S+)$", mountinfo, re.MULTILINE)
    first = {word for kind, options in mounts if kind == "cgroup" for word in options.split(",")}
    if NEEDED_CONTROLLERS & first:
        return ("hybrid" if any(kind == "cgroup2" for kind, _ in mounts) else "v1"), frozenset(first)
    if any(kind == "cgroup2" for kind, _ in mounts):
        return "v2", frozenset(unified_controllers.split())
    return "", frozenset()


def go_version(text: str) -> tuple[int, int] | None:
    """`go1.26.8` -> (1, 26)."""
    found = re.match(r"go(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


def _network() -> dict[str, str]:
    """Try the devices in a network namespace that ends with the trial."""
    trials = {
        "bridge": "ip link add name trial0 type bridge",
        "veth": "ip link add name trial0 type veth peer name trial1",
    }
    found = {name: _complaint(["unshare", "--net", *argv.split()]) for name, argv in trials.items()}
    try:
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETFILTER).close()
        return {**found, "nftables": ""}
    except OSError as error:
        return {**found, "nftables": str(error)}


def _complaint(argv: list[str]) -> str:
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        return ""  # a missing program is told as such
    done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
    return done.stderr.strip() or f"status {done.returncode}" if done.returncode else ""


def _free(path: Path) -> int:
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    return found[1] if found else ""


def _output(*argv: str) -> str:
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False).stdout.strip()
    except OSError:
        return ""
