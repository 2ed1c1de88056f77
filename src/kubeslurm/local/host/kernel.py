"""Linux system calls that Python 3.11 lacks: namespaces, mounts, pivot_root."""

import ctypes
import os
import socket
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

NEWNS, NEWCGROUP, NEWUTS, NEWIPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
NEWPID, NEWNET = 0x20000000, 0x40000000
BIND, RECURSIVE, SLAVE, SHARED = 0x1000, 0x4000, 0x80000, 0x100000
DETACH = 0x2
SYS_RESOURCE = 24  # bit number of CAP_SYS_RESOURCE

_libc = ctypes.CDLL(None, use_errno=True)
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def capabilities() -> int:
    """The effective capabilities of this process, as a bit mask of capability.h."""
    return int(Path("/proc/self/status").read_text().split("CapEff:")[1].split()[0], 16)


def unshare(flags: int) -> None:
    """Move this process into new namespaces of the given kinds."""
    _check(_libc.unshare(flags), f"unshare {flags:#x}")


def setns(fd: int, kind: int) -> None:
    """Enter the namespace behind `fd`."""
    _check(_libc.setns(fd, kind), f"setns {kind:#x}")


def mount(source: str | Path, target: Path, fstype: str = "", flags: int = 0, options: str = "") -> None:
    """mount(2)."""
    names = (os.fsencode(source), os.fsencode(target), fstype.encode())
    result = _libc.mount(*names, ctypes.c_ulong(flags), options.encode() or None)
    _check(result, f"mount {fstype or 'bind'} {source} on {target}")


def bind(source: Path, target: Path) -> None:
    """Bind mount `source` at `target`, which is created if it is missing."""
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    elif not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    mount(source, target, flags=BIND | RECURSIVE)


def pivot_root(new_root: Path) -> None:
    """Make `new_root` the root directory and unmount the old one."""
    os.chdir(new_root)
    _check(_libc.syscall(_PIVOT_ROOT[os.uname().machine], b".", b"."), f"pivot_root {new_root}")
    # Both roots are now mounted on "/"; the first unmount removes the old one.
    _check(_libc.umount2(b".", DETACH), "umount of the old root")
    os.chdir("/")


def fork_init(body: Callable[[], None]) -> int:
    """Run `body` in a child that is PID 1 of a new pid namespace. The caller must have a single thread."""
    own = os.open("/proc/self/ns/pid", os.O_RDONLY)
    try:
        unshare(NEWPID)  # applies to the next child, not to this process
        if pid := os.fork():
            setns(own, NEWPID)
            return pid
    finally:
        os.close(own)
    try:
        os.setsid()
        body()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def socket_in(netns: int, make: Callable[[], socket.socket]) -> socket.socket:
    """Call `make` in another network namespace and return the socket that it opens.

    A socket stays in the namespace that it was opened in, and setns applies to one thread only. So a short-lived thread
    opens it, and the caller stays in its own namespace.
    """
    with ThreadPoolExecutor(max_workers=1) as thread:
        thread.submit(setns, netns, NEWNET).result()
        return thread.submit(make).result()
