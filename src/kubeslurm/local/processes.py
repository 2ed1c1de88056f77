"""Starts programs inside a cluster's namespaces, as children of its init."""

import os
import resource
import signal
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

from kubeslurm.local import cgroups, kernel

_NAMESPACES = {
    "cgroup": kernel.NEWCGROUP,
    "ipc": kernel.NEWIPC,
    "uts": kernel.NEWUTS,
    "net": kernel.NEWNET,
    "mnt": kernel.NEWNS,
}


class Place:
    """Where a program runs: a cgroup, and either a directory as its root or the namespaces of a node."""

    def __init__(self, layout: cgroups.Layout, group: str, *, root: Path | None = None, node: int = 0) -> None:
        """`node` is the host process number of a node's first process."""
        self.layout = layout
        self.group = group
        self.root = root
        self.pid_namespace = os.open(f"/proc/{node}/ns/pid", os.O_RDONLY) if node else -1
        self._others = {
            os.open(f"/proc/{node}/ns/{name}", os.O_RDONLY): _NAMESPACES[name] for name in _NAMESPACES if node
        }

    def enter(self) -> None:
        """Move this process there."""
        cgroups.join(self.layout, self.group)
        for fd, kind in self._others.items():
            kernel.setns(fd, kind)
        if self.root:
            os.chroot(self.root)
        os.chdir("/")

    def close(self) -> None:
        """Let go of the namespaces, which stay alive as long as somebody holds them."""
        for fd in self._others:
            os.close(fd)
        if self.pid_namespace >= 0:
            os.close(self.pid_namespace)


def spawn(
    place: Place, argv: tuple[str, ...], environment: Mapping[str, str], log: Path, keep: tuple[int, ...] = ()
) -> int:
    """Start a program and return its process number."""
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def become() -> None:
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        for fd in keep:
            os.set_inheritable(fd, True)
        place.enter()
        os.execvpe(argv[0], argv, environment)  # noqa: S606

    try:
        return fork(become, place.pid_namespace)
    finally:
        os.close(output)


def fork(body: Callable[[], None], pid_namespace: int = -1, *, new_pid_namespace: bool = False) -> int:
    """Run `body` in a child, in this process's pid namespace, another, or a new one.

    A pid namespace is entered by the next child only, so this process steps aside for the length of one fork. It
    has to have a single thread.
    """
    home = os.open("/proc/self/ns/pid", os.O_RDONLY)
    try:
        if new_pid_namespace:
            kernel.unshare(kernel.NEWPID)
        elif pid_namespace >= 0:
            kernel.setns(pid_namespace, kernel.NEWPID)
        pid = os.fork()
        if pid == 0:
            _run_and_exit(body)
        kernel.setns(home, kernel.NEWPID)
        return pid
    finally:
        os.close(home)


def raise_open_files() -> int:
    """Allow as many open files as the hard limit does; all children inherit it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def _run_and_exit(body: Callable[[], None]) -> None:
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        body()
        os._exit(0)
    except BaseException:
        os.write(2, traceback.format_exc().encode())
        os._exit(127)
