"""Looks at this machine: rights, kernel, disk, memory and tools. Changes nothing."""

import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

import msgspec

from kubeslurm.local import artifacts, cache, cgroups

TOOLS = {  # program -> Debian package
    "buildah": "buildah",
    "ip": "iproute2",
    "mmdebstrap": "mmdebstrap",
    "mount": "mount",
    "ssh": "openssh-client",  # for those who log in to what runs in the cluster
    "unshare": "util-linux",
}
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
    go: tuple[int, ...]  # version, nothing when there is none
    missing: tuple[str, ...]  # Debian packages
    apt: bool


def look() -> Machine:
    """The facts of this machine, now."""
    layout = cgroups.detect()
    cached = next(path for path in (cache.directory(), *cache.directory().parents) if path.exists())
    return Machine(
        root=os.geteuid() == 0,
        capabilities=int(_find("/proc/self/status", r"^CapEff:\s*(\w+)"), 16),
        cgroups=layout.kind,
        controllers=layout.controllers(),
        filesystems=frozenset(Path("/proc/filesystems").read_text().split()),
        namespaces=frozenset(os.listdir("/proc/self/ns")),
        network=_network(),
        kmsg=os.access("/dev/kmsg", os.R_OK),
        inotify_instances=int(Path("/proc/sys/fs/inotify/max_user_instances").read_text()),
        memory=int(_find("/proc/meminfo", r"^MemAvailable:\s*(\d+)")) * 1024,
        disk=shutil.disk_usage(cached).free,
        built=all(entry.complete() for entry in artifacts.entries().values()),
        go=go_version(_run(["go", "env", "GOVERSION"])[0]),
        missing=tuple(sorted({package for tool, package in TOOLS.items() if shutil.which(tool) is None})),
        apt=shutil.which("apt-get") is not None,
    )


def go_version(text: str) -> tuple[int, ...]:
    """`go1.26.8` -> (1, 26)."""
    found = re.match(r"go(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else ()


def _network() -> dict[str, str]:
    """Try the devices in a network namespace that ends with the trial; a missing program is told elsewhere."""
    devices = {"bridge": "bridge", "veth": "veth peer name trial1"}
    trial = "unshare --net ip link add name trial0 type"
    found = {name: _run([*trial.split(), *kind.split()])[1] for name, kind in devices.items()}
    try:
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETFILTER).close()
    except OSError as error:
        return {**found, "nftables": str(error)}
    return {**found, "nftables": ""}


def _run(argv: list[str]) -> tuple[str, str]:
    """What a program says, and its complaint if it fails; nothing when it is not there."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    except OSError:
        return "", ""
    if "failed to execute" in done.stderr:  # `unshare` is there, `ip` is not
        return "", ""
    return done.stdout.strip(), done.stderr.strip() or f"status {done.returncode}" if done.returncode else ""


def _find(path: str, pattern: str) -> str:
    found = re.search(pattern, Path(path).read_text(), re.MULTILINE)
    return found[1] if found else "0"
