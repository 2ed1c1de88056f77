"""Checks before a start what this machine lacks: collects facts, then evaluates them into findings with remedies."""

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path

import msgspec

from kubeslurm.local.cluster import state
from kubeslurm.local.errors import LocalError
from kubeslurm.local.host import cache, cgroups, disk, golang, kernel
from kubeslurm.local.host.progress import Progress
from kubeslurm.local.host.tasks import CommandError, Tasks
from kubeslurm.local.images import artifacts

GIB = 1024**3
NETFILTER = 12  # NETLINK_NETFILTER
# Bit numbers of capability.h.
CAPABILITIES = {"CHOWN": 0, "DAC_OVERRIDE": 1, "KILL": 5, "SETUID": 7, "NET_ADMIN": 12, "SYS_CHROOT": 18}
CAPABILITIES |= {"SYS_PTRACE": 19, "SYS_ADMIN": 21, "MKNOD": 27}
NAMESPACES = frozenset({"cgroup", "ipc", "mnt", "net", "pid", "uts"})
# Programs and their Debian packages; users log in to login pods with ssh.
TOOLS = {"buildah": "buildah", "ip": "iproute2", "mmdebstrap": "mmdebstrap", "mount": "mount"}
TOOLS |= {"ssh": "openssh-client", "unshare": "util-linux"}


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(msgspec.Struct, frozen=True):
    """The result of one check."""

    name: str
    level: Level
    detail: str
    remedy: str = ""


class Machine(msgspec.Struct, frozen=True):
    """Facts about the machine; findings depend on nothing else."""

    root: bool
    capabilities: int
    cgroups: str  # v1, hybrid, v2, or empty
    controllers: frozenset[str]
    filesystems: frozenset[str]
    namespaces: frozenset[str]
    network: dict[str, str]  # feature -> error message, empty if it works
    kmsg: bool
    inotify_instances: int
    memory: int
    disk: int  # free bytes for the cache
    state_disk: int  # free bytes for the state of clusters
    built: bool  # whether everything that has to be built is in the cache
    go: tuple[int, ...]  # version; empty if it is not installed
    missing: tuple[str, ...]  # Debian packages
    apt: bool


def require(progress: Progress) -> None:
    """Install missing packages with apt, then raise one error that names everything that is still missing."""
    machine = inspect()
    if machine.missing and machine.apt and machine.root:
        install(machine.missing, progress)
        machine = inspect()
    if failed := [finding for finding in evaluate(machine) if finding.level is Level.FAIL]:
        raise LocalError(
            " ".join(f"{finding.name}: {finding.detail}" for finding in failed),
            " ".join(dict.fromkeys(finding.remedy for finding in failed)),
        )


def install(packages: Iterable[str], progress: Progress) -> None:
    """Install Debian packages."""
    names, tasks = sorted(packages), Tasks()
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    with progress.step(f"install {', '.join(names)}"):
        try:
            tasks.run(["apt-get", "update"], env=quiet)
            tasks.run(["apt-get", "install", "-y", "--no-install-recommends", *names], env=quiet)
        except CommandError as failure:
            remedy = f"Repair apt, or install them yourself: `apt-get install {' '.join(names)}`."
            raise failure.as_error(f"apt could not install {', '.join(names)}.", remedy) from failure


def inspect() -> Machine:
    """Facts about this machine now; changes nothing."""
    layout = cgroups.detect()
    return Machine(
        root=os.geteuid() == 0,
        capabilities=kernel.capabilities(),
        cgroups=layout.kind,
        controllers=layout.controllers(),
        filesystems=frozenset(Path("/proc/filesystems").read_text().split()),
        namespaces=frozenset(os.listdir("/proc/self/ns")),
        network=_network(),
        kmsg=os.access("/dev/kmsg", os.R_OK),
        inotify_instances=int(Path("/proc/sys/fs/inotify/max_user_instances").read_text()),
        memory=int(Path("/proc/meminfo").read_text().split("MemAvailable:")[1].split()[0]) * 1024,
        disk=disk.free(cache.directory()),
        state_disk=disk.free(state.root()),
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
    """Create the devices in a temporary network namespace; `_programs` reports missing programs."""
    add = ["unshare", "--net", "ip", "link", "add", "name", "trial0", "type"]
    found = {"bridge": _run([*add, "bridge"])[1], "veth": _run([*add, "veth", "peer", "name", "trial1"])[1]}
    try:
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETFILTER).close()
    except OSError as error:
        return {**found, "nftables": str(error)}
    return {**found, "nftables": ""}


def _run(argv: list[str]) -> tuple[str, str]:
    """The output of a program, and its error message if it fails; both are empty if it is not installed."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    except OSError:
        return "", ""
    except subprocess.TimeoutExpired:
        return "", "no answer"
    if "failed to execute" in done.stderr:  # `unshare` is installed, `ip` is not
        return "", ""
    return done.stdout.strip(), done.stderr.strip() or f"status {done.returncode}" if done.returncode else ""


def evaluate(machine: Machine) -> list[Finding]:
    """Findings of all checks."""
    return [_rights(machine), _cgroups(machine), *_kernel(machine), *_resources(machine), *_programs(machine)]


def _finding(name: str, ok: str, problem: str, remedy: str, level: Level = Level.FAIL) -> Finding:
    """OK, unless there is a problem."""
    return Finding(name, level, f"{problem}.", remedy) if problem else Finding(name, Level.OK, ok)


def _rights(machine: Machine) -> Finding:
    if not machine.root:
        return Finding("rights", Level.FAIL, "the user is not root.", "Run as root: `sudo make up`.")
    missing = [f"CAP_{name}" for name, bit in CAPABILITIES.items() if not machine.capabilities >> bit & 1]
    limited = not machine.capabilities >> kernel.SYS_RESOURCE & 1
    note = "; without CAP_SYS_RESOURCE, so containers keep their parent's OOM score" if limited else ""
    remedy = "Use a machine or a container with more rights (for a container: `--privileged`)."
    return _finding("rights", f"root{note}", f"root lacks {', '.join(missing)}" if missing else "", remedy)


def _cgroups(machine: Machine) -> Finding:
    missing = sorted(cgroups.REQUIRED - machine.controllers)
    problem = f"the {machine.cgroups} layout has no {', no '.join(missing)}" if missing else ""
    if not machine.cgroups:
        problem = "none are mounted"
    remedy = "Mount control groups at /sys/fs/cgroup with the controllers cpu, memory and pids."
    return _finding("cgroups", f"{machine.cgroups} layout", problem, remedy)


def _kernel(machine: Machine) -> Iterator[Finding]:
    missing = sorted({"overlay", "tmpfs", "proc"} - machine.filesystems)
    missing += [f"{name} namespaces" for name in sorted(NAMESPACES - machine.namespaces)]
    if not missing and "user" not in machine.namespaces:
        yield Finding("kernel", Level.WARN, "no user namespaces: pods with hostUsers: false will not start.")
    else:
        ok = f"{os.uname().release}: overlay and all namespaces"
        remedy = "Use a kernel that has them (any distribution's own kernel does)."
        yield _finding("kernel", ok, f"no {', no '.join(missing)}" if missing else "", remedy)
    failed = [f"{name} ({error})" for name, error in machine.network.items() if error]
    ok = f"{', '.join(machine.network)} in a network namespace"
    remedy = "Load the kernel modules veth, bridge and nf_tables, or use a kernel that has them."
    yield _finding("network", ok, f"cannot create {', '.join(failed)}" if failed else "", remedy)
    problem = "" if machine.kmsg else "cannot be read, and a kubelet does not start without it"
    yield _finding("/dev/kmsg", "readable", problem, "In a container: pass the device, `--device /dev/kmsg`.")


def _resources(machine: Machine) -> Iterator[Finding]:
    nodes = machine.inotify_instances // 12
    detail = f"{machine.inotify_instances} instances, enough for about {nodes} nodes"
    remedy = "Raise it: `sysctl fs.inotify.max_user_instances=512`."
    yield _finding("inotify", detail, detail if nodes < 3 else "", remedy, Level.WARN)
    detail = f"{machine.memory / GIB:.1f} GB available"
    if 1.5 * GIB <= machine.memory < 3 * GIB:
        yield Finding("memory", Level.WARN, f"{detail}; three busy nodes may take all of it.")
    else:
        problem = f"{detail}, 1.5 GB are required" if machine.memory < 3 * GIB else ""
        yield _finding("memory", detail, problem, "Free some memory, or start fewer nodes.")
    required = (2, "2 GB are required to run") if machine.built else (10, "10 GB are required for a first build")
    for name, path, free, (least, problem), variable in (
        ("disk", cache.directory(), machine.disk, required, "XDG_CACHE_HOME"),
        ("state", state.root(), machine.state_disk, (1, "1 GB is required"), "XDG_STATE_HOME"),
    ):
        detail = f"{free / GIB:.1f} GB free below {path}"
        remedy = f"Free some space, or set {variable} to a directory on a larger disk."
        yield _finding(name, detail, f"{detail}, {problem}" if free < least * GIB else "", remedy)


def _programs(machine: Machine) -> Iterator[Finding]:
    version = ".".join(map(str, machine.go))
    ok = "not required, Kubernetes is in the cache" if machine.built else version
    problem = f"version {version} is too old" if version else "not installed"
    yield _finding("Go", ok, "" if machine.built or machine.go >= golang.MIN_VERSION else problem, golang.INSTALL)
    names = " ".join(machine.missing)
    remedy = f"Install: `apt-get install {names}`." if machine.apt else f"Install {names} with your package manager."
    yield _finding("packages", ", ".join(sorted(TOOLS)), f"not installed: {names}" if names else "", remedy)
