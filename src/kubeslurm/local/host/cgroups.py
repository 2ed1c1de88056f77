"""Control groups: finds out how this machine has them, and keeps all of ours below one group named `kubeslurm`."""

import contextlib
import os
import signal
import time
from pathlib import Path

import msgspec

ROOT = "kubeslurm"
NEEDED = frozenset({"cpu", "memory", "pids"})
_NOT_CONTROLLERS = ("rw", "ro", "xattr", "nsdelegate", "memory_", "release_agent=", "favordynmods")


class Hierarchy(msgspec.Struct, frozen=True):
    """One mounted cgroup tree of the host."""

    mountpoint: Path
    fstype: str  # cgroup (v1) or cgroup2
    options: str  # what to mount it with again: controllers, or a name for a tree without any


class Layout(msgspec.Struct, frozen=True):
    """The trees in which nodes get groups of their own."""

    hierarchies: tuple[Hierarchy, ...]
    kind: str  # v1, hybrid, v2, or nothing

    @property
    def unified(self) -> bool:
        return self.kind == "v2"

    def directories(self, group: str) -> list[Path]:
        return [hierarchy.mountpoint / ROOT / group for hierarchy in self.hierarchies]

    def controllers(self) -> frozenset[str]:
        """What the trees can limit."""
        if self.unified:
            return frozenset((self.hierarchies[0].mountpoint / "cgroup.controllers").read_text().split())
        return frozenset(word for hierarchy in self.hierarchies for word in hierarchy.options.split(","))


def parse(mountinfo: str) -> Layout:
    """v1 trees when they have the controllers (as on a hybrid machine), otherwise the unified tree."""
    seen: dict[str, Hierarchy] = {}
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fstype, _, super_options = after.split(" ")[:3]
        if fstype in ("cgroup", "cgroup2"):
            words = [word for word in super_options.split(",") if not word.startswith(_NOT_CONTROLLERS)]
            options = ",".join(words) if fstype == "cgroup" else ""
            if options.startswith("name="):
                options = f"none,{options}"  # as for systemd's own tree; containerd's statistics fail without it
            seen.setdefault(fstype + options, Hierarchy(Path(before.split(" ")[4]), fstype, options))
    first = tuple(tree for tree in seen.values() if tree.fstype == "cgroup")
    second = tuple(tree for tree in seen.values() if tree.fstype == "cgroup2")
    if any(NEEDED.intersection(tree.options.split(",")) for tree in first):
        return Layout(first, "hybrid" if second else "v1")
    return Layout(second, "v2" if second else "")


def detect() -> Layout:
    """The layout of this machine."""
    return parse(Path("/proc/self/mountinfo").read_text())


def make(layout: Layout, group: str) -> None:
    """Create `kubeslurm/<group>` in every tree."""
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
    """End every process in a group and below it; says whether there were any."""
    pids: set[int] = set()
    folders = (folder for directory in layout.directories(group) for folder, _, _ in os.walk(directory))
    for folder in folders:
        with contextlib.suppress(OSError):  # a group of a pod that ends just now
            pids |= set(map(int, Path(folder, "cgroup.procs").read_text().split()))
    pids.discard(0)  # stands for processes that this pid namespace does not see; as a target it would mean ourselves
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(pids)


def remove(layout: Layout, group: str, *, patience: float = 5.0) -> list[Path]:
    """Remove a group with all below it, and `kubeslurm` itself when it is empty; says what could not go."""
    deadline = time.monotonic() + patience
    while left := [directory for directory in layout.directories(group) if not _removed(directory)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)  # the kernel lets go of a group shortly after its last process
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
    """Hand all controllers down (v2); a group with processes of its own cannot, and then has none to give."""
    controllers = (directory / "cgroup.controllers").read_text().split()
    with contextlib.suppress(OSError):
        (directory / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in controllers))


def _fill_cpuset(directory: Path) -> None:
    """A new cpuset of v1 is empty and takes no process until it is filled."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        if not (directory / name).read_text().strip():
            (directory / name).write_text((directory.parent / name).read_text())
