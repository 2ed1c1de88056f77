"""Says before anything starts what this machine lacks, and what to do about it: looks, then judges what it saw."""

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
from kubeslurm.local.host import cache, cgroups, golang, kernel
from kubeslurm.local.host.progress import Progress
from kubeslurm.local.host.tasks import Failed, Tasks
from kubeslurm.local.images import artifacts

GIB = 1024**3
NETFILTER = 12  # NETLINK_NETFILTER
# Bit numbers of capability.h.
CAPABILITIES = {"CHOWN": 0, "DAC_OVERRIDE": 1, "KILL": 5, "SETUID": 7, "NET_ADMIN": 12, "SYS_CHROOT": 18}
CAPABILITIES |= {"SYS_PTRACE": 19, "SYS_ADMIN": 21, "MKNOD": 27}
NAMESPACES = frozenset({"cgroup", "ipc", "mnt", "net", "pid", "uts"})
# Programs and their Debian packages; ssh is for those who log in to what runs in the cluster.
TOOLS = {"buildah": "buildah", "ip": "iproute2", "mmdebstrap": "mmdebstrap", "mount": "mount"}
TOOLS |= {"ssh": "openssh-client", "unshare": "util-linux"}


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    name: str
    level: Level
    detail: str
    remedy: str = ""


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
    disk: int  # free where the cache is
    state_disk: int  # free where clusters keep their state
    built: bool  # everything that has to be built is in the cache already
    go: tuple[int, ...]  # version, nothing when there is none
    missing: tuple[str, ...]  # Debian packages
    apt: bool


def require(progress: Progress) -> None:
    """Install what apt can bring, then fail with one clear error if something is still missing."""
    machine = look()
    if machine.missing and machine.apt and machine.root:
        install(machine.missing, progress)
        machine = look()
    if failed := [finding for finding in judge(machine) if finding.level is Level.FAIL]:
        raise LocalError(
            " ".join(f"{finding.name}: {finding.detail}" for finding in failed),
            " ".join(dict.fromkeys(finding.remedy for finding in failed)),
        )


def install(packages: Iterable[str], progress: Progress) -> None:
    """Install Debian packages by name."""
    names, tasks = sorted(packages), Tasks()
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    with progress.step(f"install {', '.join(names)}"):
        try:
            tasks.run(["apt-get", "update"], env=quiet)
            tasks.run(["apt-get", "install", "-y", "--no-install-recommends", *names], env=quiet)
        except Failed as failure:
            remedy = f"Repair apt, or install them yourself: `apt-get install {' '.join(names)}`."
            raise failure.as_error(f"apt could not install {', '.join(names)}.", remedy) from failure


def look() -> Machine:
    """The facts of this machine, now; nothing is changed."""
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
        disk=_free(cache.directory()),
        state_disk=_free(state.root()),
        built=all(entry.complete() for entry in artifacts.entries().values()),
        go=go_version(_run(["go", "env", "GOVERSION"])[0]),
        missing=tuple(sorted({package for tool, package in TOOLS.items() if shutil.which(tool) is None})),
        apt=shutil.which("apt-get") is not None,
    )


def go_version(text: str) -> tuple[int, ...]:
    """`go1.26.8` -> (1, 26)."""
    found = re.match(r"go(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else ()


def _free(place: Path) -> int:
    return shutil.disk_usage(next(path for path in (place, *place.parents) if path.exists())).free


def _network() -> dict[str, str]:
    """Try the devices in a network namespace that ends with the trial; a missing program is told elsewhere."""
    trial = ["unshare", "--net", "ip", "link", "add", "name", "trial0", "type"]
    found = {"bridge": _run([*trial, "bridge"])[1], "veth": _run([*trial, "veth", "peer", "name", "trial1"])[1]}
    try:
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETFILTER).close()
    except OSError as error:
        return {**found, "nftables": str(error)}
    return {**found, "nftables": ""}


def _run(argv: list[str]) -> tuple[str, str]:
    """What a program says, and its complaint if it fails; nothing when it is not there."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    except OSError:
        return "", ""
    except subprocess.TimeoutExpired:
        return "", "no answer"
    if "failed to execute" in done.stderr:  # `unshare` is there, `ip` is not
        return "", ""
    return done.stdout.strip(), done.stderr.strip() or f"status {done.returncode}" if done.returncode else ""


def judge(machine: Machine) -> list[Finding]:
    """What the facts mean for a cluster."""
    return [_rights(machine), _cgroups(machine), *_kernel(machine), *_room(machine), *_programs(machine)]


def _finding(name: str, fine: str, lack: str, remedy: str, level: Level = Level.FAIL) -> Finding:
    """Fine, unless something is lacking."""
    return Finding(name, level, f"{lack}.", remedy) if lack else Finding(name, Level.OK, fine)


def _rights(machine: Machine) -> Finding:
    if not machine.root:
        return Finding("rights", Level.FAIL, "this is not the root user.", "Run as root: `sudo make up`.")
    lacking = [f"CAP_{name}" for name, bit in CAPABILITIES.items() if not machine.capabilities >> bit & 1]
    limited = not machine.capabilities >> kernel.SYS_RESOURCE & 1
    note = "; CAP_SYS_RESOURCE is missing, containers then keep their parent's OOM score" if limited else ""
    remedy = "Use a machine or a container with more rights (for a container: `--privileged`)."
    return _finding("rights", f"root{note}", f"root lacks {', '.join(lacking)}" if lacking else "", remedy)


def _cgroups(machine: Machine) -> Finding:
    lacking = sorted(cgroups.NEEDED - machine.controllers)
    lack = f"the {machine.cgroups} layout has no {', no '.join(lacking)}" if lacking else ""
    remedy = "Mount control groups at /sys/fs/cgroup with the controllers cpu, memory and pids."
    return _finding("cgroups", f"{machine.cgroups} layout", lack if machine.cgroups else "none are mounted", remedy)


def _kernel(machine: Machine) -> Iterator[Finding]:
    lacking = sorted({"overlay", "tmpfs", "proc"} - machine.filesystems)
    lacking += [f"{space} namespaces" for space in sorted(NAMESPACES - machine.namespaces)]
    if not lacking and "user" not in machine.namespaces:
        yield Finding("kernel", Level.WARN, "no user namespaces: pods with hostUsers: false will not start.")
    else:
        fine = f"{os.uname().release}: overlay and all namespaces"
        remedy = "Use a kernel that has them (any distribution's own kernel does)."
        yield _finding("kernel", fine, f"no {', no '.join(lacking)}" if lacking else "", remedy)
    broken = [f"{name} ({complaint})" for name, complaint in machine.network.items() if complaint]
    fine = f"{', '.join(machine.network)} in a namespace of their own"
    remedy = "Load the kernel modules veth, bridge and nf_tables, or use a kernel that has them."
    yield _finding("network", fine, f"cannot make {', '.join(broken)}" if broken else "", remedy)
    lack = "" if machine.kmsg else "cannot be read, and a kubelet does not start without it"
    yield _finding("/dev/kmsg", "readable", lack, "In a container: pass the device, `--device /dev/kmsg`.")


def _room(machine: Machine) -> Iterator[Finding]:
    nodes = machine.inotify_instances // 12
    detail = f"{machine.inotify_instances} instances, enough for about {nodes} nodes"
    remedy = "Raise it: `sysctl fs.inotify.max_user_instances=512`."
    yield _finding("inotify", detail, detail if nodes < 3 else "", remedy, Level.WARN)
    detail = f"{machine.memory / GIB:.1f} GB available"
    if 1.5 * GIB <= machine.memory < 3 * GIB:
        yield Finding("memory", Level.WARN, f"{detail}; three busy nodes may take all of it.")
    else:
        lack = f"{detail}, 1.5 are needed" if machine.memory < 3 * GIB else ""
        yield _finding("memory", detail, lack, "Free some memory, or start fewer nodes.")
    needed = (2, "2 are needed to run") if machine.built else (10, "10 are needed for a first build")
    for name, place, free, (least, words), variable in (
        ("disk", cache.directory(), machine.disk, needed, "XDG_CACHE_HOME"),
        ("state", state.root(), machine.state_disk, (1, "1 is needed"), "XDG_STATE_HOME"),
    ):
        detail = f"{free / GIB:.1f} GB free below {place}"
        remedy = f"Free some space, or set {variable} to a directory on a larger disk."
        yield _finding(name, detail, f"{detail}, {words}" if free < least * GIB else "", remedy)


def _programs(machine: Machine) -> Iterator[Finding]:
    version = ".".join(map(str, machine.go))
    fine = "not needed, Kubernetes is in the cache" if machine.built else version
    lack = f"version {version} is too old" if version else "not installed"
    yield _finding("Go", fine, "" if machine.built or machine.go >= golang.NEEDED else lack, golang.INSTALL)
    names = " ".join(machine.missing)
    remedy = f"Install: `apt-get install {names}`." if machine.apt else f"Install {names} with your package manager."
    yield _finding("packages", ", ".join(sorted(TOOLS)), f"not installed: {names}" if names else "", remedy)
