"""Root file systems: an overlay on the node image, with the kernel's file systems mounted in it."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from kubeslurm.local.host import kernel
from kubeslurm.local.host.cgroups import Layout

BINARIES = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "kubectl",
    "coredns",
)
_DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "kmsg": (1, 11)}
_DEVICES |= {"tty": (5, 0), "fuse": (10, 229), "net/tun": (10, 200)}
_LINKS = {"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
# The kubelet requires these values and would set them for the whole machine.
_TUNABLES = {"vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10, "kernel/panic_on_oops": 1}
_TUNABLES |= {"kernel/keys/root_maxkeys": 1000000, "kernel/keys/root_maxbytes": 25000000}


def assemble(scratch: Path, image: Path, kubernetes: Path) -> Path:
    """Mount an overlay on the image below `scratch`; what is written to it is kept in memory."""
    scratch.mkdir(parents=True, exist_ok=True)
    kernel.mount("tmpfs", scratch, "tmpfs", options="mode=755")
    root, upper, work = (scratch / name for name in ("root", "upper", "work"))
    for directory in (root, upper, work):
        directory.mkdir()
    kernel.mount("overlay", root, "overlay", options=f"lowerdir={image},upperdir={upper},workdir={work}")
    kernel.bind(kubernetes, root / "usr/local/bin/kubernetes")
    for name in BINARIES:
        (root / "usr/local/bin" / name).symlink_to("kubernetes")
    kernel.mount("proc", root / "proc", "proc")
    kernel.mount("sysfs", root / "sys", "sysfs")
    kernel.mount("tmpfs", root / "run", "tmpfs", options="mode=755")
    kernel.mount("tmpfs", root / "tmp", "tmpfs", options="mode=1777")
    _devices(root / "dev")
    return root


def write(root: Path, files: Mapping[str, str], mode: int = 0o644) -> None:
    """Write files given by absolute path below `root`."""
    for name, content in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # the image may have a link there
        path.touch(mode)
        path.write_text(content)


def control_groups(root: Path, layout: Layout) -> None:
    """Mount the machine's cgroup hierarchies; in a cgroup namespace their root is the node's own group."""
    top = root / "sys/fs/cgroup"
    if layout.unified:
        kernel.mount("cgroup2", top, "cgroup2")
        return
    kernel.mount("tmpfs", top, "tmpfs", options="mode=755")
    for hierarchy in layout.hierarchies:
        folder = top / hierarchy.mountpoint.name
        folder.mkdir()
        kernel.mount("cgroup", folder, "cgroup", options=hierarchy.options)


def kernel_tunables(root: Path, scratch: Path) -> None:
    """Cover kernel settings with files that hold the required values; the settings of the machine do not change."""
    for number, (name, value) in enumerate(_TUNABLES.items()):
        file = scratch / f"tunable-{number}"
        file.write_text(f"{value}\n")
        kernel.bind(file, root / "proc/sys" / name)
    # The kernel lets a user namespace mount /proc only if a /proc without such covers is mounted somewhere.
    full = root / "run/proc-full"
    full.mkdir()
    kernel.mount("proc", full, "proc")


def _devices(directory: Path) -> None:
    kernel.mount("tmpfs", directory, "tmpfs", options="mode=755,size=1m")
    for name in ("pts", "shm", "mqueue", "net"):
        (directory / name).mkdir()
    for name, (major, minor) in _DEVICES.items():
        os.mknod(directory / name, 0o600 | stat.S_IFCHR, os.makedev(major, minor))
        (directory / name).chmod(0o666)
    kernel.mount("devpts", directory / "pts", "devpts", options="newinstance,ptmxmode=666,mode=620")
    kernel.mount("tmpfs", directory / "shm", "tmpfs", options="mode=1777")
    kernel.mount("mqueue", directory / "mqueue", "mqueue")
    for name, target in _LINKS.items():
        (directory / name).symlink_to(target)
