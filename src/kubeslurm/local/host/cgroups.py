"""Control groups: detects this machine's cgroup layout, and keeps all our groups below one named `kubeslurm`."""

import contextlib
import os
import signal
import time
from pathlib import Path

import msgspec

ROOT = "kubeslurm"
REQUIRED = frozenset({"cpu", "memory", "pids"})
_NOT_CONTROLLERS = ("rw", "ro", "xattr", "nsdelegate", "memory_", "release_agent=", "favordynmods")


class Hierarchy(msgspec.Struct, frozen=True):
    """One mounted cgroup hierarchy of the host."""

    mountpoint: Path
    fstype: str  # cgroup (v1) or cgroup2
    options: str  # to mount it again: its controllers, or its name if it has none


class Layout(msgspec.Struct, frozen=True):
    """The hierarchies in which nodes get their own groups."""

    hierarchies: tuple[Hierarchy, ...]
    kind: str  # v1, hybrid, v2, or empty

    @property
    def unified(self) -> bool:
        return self.kind == "v2"

    def directories(self, group: str) -> list[Path]:
        return [hierarchy.mountpoint / ROOT / group for hierarchy in self.hierarchies]

    def controllers(self) -> frozenset[str]:
        """The controllers of all hierarchies."""
        if self.unified:
            return frozenset((self.hierarchies[0].mountpoint / "cgroup.controllers").read_text().split())
        return frozenset(word for hierarchy in self.hierarchies for word in hierarchy.options.split(","))


def parse(mountinfo: str) -> Layout:
    """The v1 hierarchies if they have the controllers (also on a hybrid machine), otherwise the unified one."""
    found: dict[str, Hierarchy] = {}
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fstype, _, super_options = after.split(" ")[:3]
        if fstype in ("cgroup", "cgroup2"):
            controllers = [word for word in super_options.split(",") if not word.startswith(_NOT_CONTROLLERS)]
            options = ",".join(controllers) if fstype == "cgroup" else ""
            if options.startswith("name="):
                options = f"none,{options}"  # systemd's own hierarchy; containerd's statistics fail without it
            found.setdefault(fstype + options, Hierarchy(Path(before.split(" ")[4]), fstype, options))
    v1 = tuple(hierarchy for hierarchy in found.values() if hierarchy.fstype == "cgroup")
    v2 = tuple(hierarchy for hierarchy in found.values() if hierarchy.fstype == "cgroup2")
    if any(REQUIRED.intersection(hierarchy.options.split(",")) for hierarchy in v1):
        return Layout(v1, "hybrid" if v2 else "v1")
    return Layout(v2, "v2" if v2 else "")


def detect() -> Layout:
    """The layout of this machine."""
    return parse(Path("/proc/self/mountinfo").read_text())


def make(layout: Layout, group: str) -> None:
    """Create `kubeslurm/<group>` in every hierarchy."""
    for hierarchy in layout.hierarchies:
        directory = hierarchy.mountpoint
        for part in (ROOT, *group.split("/")):
            if layout.unified:
                _delegate(directory)
            directory = directory / part
            directory.mkdir(exist_ok=True)
            if "cpuset" in hierarchy.options.split(","):
                _fill_cpuset(directory)


def join(layout: Layout, group: str) -> None:
    """Move this process into `kubeslurm/<group>`."""
    for directory in layout.directories(group):
        (directory / "cgroup.procs").write_text("0\n")


def kill(layout: Layout, group: str) -> bool:
    """Kill every process in a group and below it; returns whether there were any."""
    pids: set[int] = set()
    folders = (folder for directory in layout.directories(group) for folder, _, _ in os.walk(directory))
    for folder in folders:
        with contextlib.suppress(OSError):  # the group of a pod that just ended
            pids |= set(map(int, Path(folder, "cgroup.procs").read_text().split()))
    pids.discard(0)  # 0 stands for processes outside this pid namespace; kill(0) would signal our own process group
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(pids)


def remove(layout: Layout, group: str, *, timeout: float = 5.0) -> list[Path]:
    """Remove a group and all below it, and `kubeslurm` itself if it is empty; returns what could not be removed."""
    deadline = time.monotonic() + timeout
    while left := [directory for directory in layout.directories(group) if not _removed(directory)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)  # the kernel releases a group shortly after its last process has ended
    for hierarchy in layout.hierarchies:
        with contextlib.suppress(OSError):
            (hierarchy.mountpoint / ROOT).rmdir()
    return left


def _removed(directory: Path) -> bool:
    with contextlib.suppress(OSError):
        for path, _, _ in os.walk(directory, topdown=False):
            Path(path).rmdir()
    return not directory.exists()


def _delegate(directory: Path) -> None:
    """Enable all controllers for child groups (v2). The kernel refuses this for a group that has processes itself."""
    controllers = (directory / "cgroup.controllers").read_text().split()
    with contextlib.suppress(OSError):
        (directory / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in controllers))


def _fill_cpuset(directory: Path) -> None:
    """Copy the parent's cpuset: a new v1 cpuset is empty and accepts no process until it is filled."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        if not (directory / name).read_text().strip():
            (directory / name).write_text((directory.parent / name).read_text())
