"""Control groups: finds out how this machine has them, and keeps all of ours below one group named `kubeslurm`."""

import contextlib
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

ROOT = "kubeslurm"


class Hierarchy(msgspec.Struct, frozen=True):
    """One mounted cgroup tree of the host."""

    mountpoint: Path
    fstype: str  # cgroup (v1) or cgroup2
    options: str  # what to mount it with again: controllers, or a name for a tree without any

    @property
    def folder(self) -> str:
        return self.mountpoint.name


class Layout(msgspec.Struct, frozen=True):
    """The trees in which nodes get groups of their own."""

    hierarchies: tuple[Hierarchy, ...]

    @property
    def unified(self) -> bool:
        return len(self.hierarchies) == 1 and self.hierarchies[0].fstype == "cgroup2"

    def directories(self, group: str) -> list[Path]:
        return [hierarchy.mountpoint / ROOT / group for hierarchy in self.hierarchies]


def parse(mountinfo: str) -> Layout:
    """v1 trees when there are any (a hybrid machine keeps its controllers there), otherwise the unified tree."""
    seen: dict[str, Hierarchy] = {}
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fstype, _, super_options = after.split(" ")[:3]
        if fstype in ("cgroup", "cgroup2"):
            words = [o for o in super_options.split(",") if o not in ("rw", "ro", "xattr", "nsdelegate")]
            words = [o for o in words if not o.startswith(("memory_", "release_agent=", "favordynmods"))]
            options = ",".join(words) if fstype == "cgroup" else ""
            if options.startswith("name="):
                options = f"none,{options}"  # as for systemd's own tree; containerd's statistics fail without it
            seen.setdefault(fstype + options, Hierarchy(Path(before.split(" ")[4]), fstype, options))
    first = [h for h in seen.values() if h.fstype == "cgroup"]
    return Layout(tuple(first or [h for h in seen.values() if h.fstype == "cgroup2"]))


def detect() -> Layout:
    """The layout of this machine."""
    return parse(Path("/proc/self/mountinfo").read_text())


def make(layout: Layout, group: str) -> None:
    """Create `kubeslurm/<group>` in every tree."""
    for hierarchy in layout.hierarchies:
        directory = hierarchy.mountpoint
        for part in (ROOT, *group.split("/")):
            if hierarchy.fstype == "cgroup2":
                _delegate(directory)
            directory = directory / part
            directory.mkdir(exist_ok=True)
            _fill_cpuset(hierarchy, directory)


def join(layout: Layout, group: str, pid: int | str = 0) -> None:
    """Move a process (0: this one) into `kubeslurm/<group>`."""
    for directory in layout.directories(group):
        (directory / "cgroup.procs").write_text(f"{pid}\n")


def remove(layout: Layout, group: str, *, patience: float = 5.0) -> list[Path]:
    """Remove a group with all below it, and `kubeslurm` itself when it is empty; says what could not go."""
    deadline = time.monotonic() + patience
    while True:
        left = [d for d in layout.directories(group) if not _removed(d)]
        if not left or time.monotonic() > deadline:
            break
        time.sleep(0.02)  # the kernel lets go of a group shortly after its last process
    for hierarchy in layout.hierarchies:
        with contextlib.suppress(OSError):
            (hierarchy.mountpoint / ROOT).rmdir()
    return left


def _removed(directory: Path) -> bool:
    if not directory.exists():
        return True
    try:
        for child in sorted(_below(directory), key=lambda path: len(path.parts), reverse=True):
            child.rmdir()
        directory.rmdir()
    except OSError:
        return False
    return True


def _below(directory: Path) -> Iterable[Path]:
    return [path for path in directory.rglob("*") if path.is_dir()]


def _delegate(directory: Path) -> None:
    """Hand all controllers down (v2); a group with processes of its own cannot, and then has none to give."""
    controllers = (directory / "cgroup.controllers").read_text().split()
    with contextlib.suppress(OSError):
        (directory / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in controllers))


def _fill_cpuset(hierarchy: Hierarchy, directory: Path) -> None:
    """A new cpuset of v1 is empty and takes no process until it is filled."""
    if hierarchy.fstype == "cgroup" and "cpuset" in hierarchy.options.split(","):
        for name in ("cpuset.cpus", "cpuset.mems"):
            if not (directory / name).read_text().strip():
                (directory / name).write_text((directory.parent / name).read_text())
