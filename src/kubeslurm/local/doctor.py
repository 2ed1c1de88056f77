"""Says before anything starts what this machine lacks, and what to do about it."""

import os
from collections.abc import Iterable
from enum import StrEnum

import msgspec

from kubeslurm.local import cache, golang
from kubeslurm.local.cgroups import NEEDED
from kubeslurm.local.errors import LocalError
from kubeslurm.local.machine import TOOLS, Machine, look
from kubeslurm.local.progress import Progress
from kubeslurm.local.tasks import Failed, Tasks

GIB = 1024**3
NEEDED_GO = (1, 26)
# Bit numbers of capability.h.
CAPABILITIES = {"CHOWN": 0, "DAC_OVERRIDE": 1, "KILL": 5, "SETUID": 7, "NET_ADMIN": 12, "SYS_CHROOT": 18}
CAPABILITIES |= {"SYS_PTRACE": 19, "SYS_ADMIN": 21, "MKNOD": 27}
SYS_RESOURCE = 24


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


def examine() -> list[Finding]:
    """Look at this machine and judge it."""
    return judge(look())


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


def judge(machine: Machine) -> list[Finding]:
    """What the facts mean for a cluster."""
    checks = (_rights, _cgroups, _kernel, _network, _kmsg, _inotify, _memory, _disk, _go, _packages)
    return [check(machine) for check in checks]


def _rights(machine: Machine) -> Finding:
    if not machine.root:
        return Finding("rights", Level.FAIL, "this is not the root user.", "Run as root: `sudo make up`.")
    if lacking := [name for name, bit in CAPABILITIES.items() if not machine.capabilities >> bit & 1]:
        remedy = "Use a machine or a container with more rights (for a container: `--privileged`)."
        return Finding("rights", Level.FAIL, f"root lacks CAP_{', CAP_'.join(lacking)}.", remedy)
    limited = not machine.capabilities >> SYS_RESOURCE & 1
    note = "; CAP_SYS_RESOURCE is missing, containers then keep their parent's OOM score" if limited else ""
    return Finding("rights", Level.OK, f"root{note}")


def _cgroups(machine: Machine) -> Finding:
    lacking = sorted(NEEDED - machine.controllers)
    if machine.cgroups and not lacking:
        return Finding("cgroups", Level.OK, f"{machine.cgroups} layout")
    detail = f"the {machine.cgroups} layout has no {', no '.join(lacking)}." if machine.cgroups else "none are mounted."
    remedy = "Mount control groups at /sys/fs/cgroup with the controllers cpu, memory and pids."
    return Finding("cgroups", Level.FAIL, detail, remedy)


def _kernel(machine: Machine) -> Finding:
    lacking = sorted({"overlay", "tmpfs", "proc"} - machine.filesystems)
    spaces = {"cgroup", "ipc", "mnt", "net", "pid", "uts"} - machine.namespaces
    if lacking := [*lacking, *(f"{space} namespaces" for space in sorted(spaces))]:
        remedy = "Use a kernel that has them (any distribution's own kernel does)."
        return Finding("kernel", Level.FAIL, f"no {', no '.join(lacking)}.", remedy)
    if "user" not in machine.namespaces:
        return Finding("kernel", Level.WARN, "no user namespaces: pods with hostUsers: false will not start.")
    return Finding("kernel", Level.OK, f"{os.uname().release}: overlay and all namespaces")


def _network(machine: Machine) -> Finding:
    if broken := [f"{name} ({complaint})" for name, complaint in machine.network.items() if complaint]:
        remedy = "Load the kernel modules veth, bridge and nf_tables, or use a kernel that has them."
        return Finding("network", Level.FAIL, f"cannot make {', '.join(broken)}.", remedy)
    return Finding("network", Level.OK, f"{', '.join(machine.network)} in a namespace of their own")


def _kmsg(machine: Machine) -> Finding:
    if machine.kmsg:
        return Finding("/dev/kmsg", Level.OK, "readable")
    remedy = "In a container: pass the device, `--device /dev/kmsg`."
    return Finding("/dev/kmsg", Level.FAIL, "cannot be read, and a kubelet does not start without it.", remedy)


def _inotify(machine: Machine) -> Finding:
    nodes = machine.inotify_instances // 12
    detail = f"{machine.inotify_instances} instances, enough for about {nodes} nodes"
    if nodes >= 3:
        return Finding("inotify", Level.OK, detail)
    return Finding("inotify", Level.WARN, f"{detail}.", "Raise it: `sysctl fs.inotify.max_user_instances=512`.")


def _memory(machine: Machine) -> Finding:
    detail = f"{machine.memory / GIB:.1f} GB available"
    if machine.memory >= 3 * GIB:
        return Finding("memory", Level.OK, detail)
    if machine.memory >= 1.5 * GIB:
        return Finding("memory", Level.WARN, f"{detail}; three nodes and the control plane take about 1.5.")
    return Finding("memory", Level.FAIL, f"{detail}, 1.5 are needed.", "Free some memory, or start fewer nodes.")


def _disk(machine: Machine) -> Finding:
    needed, why = (2, "to run") if machine.built else (10, "for a first build")
    detail = f"{machine.disk / GIB:.0f} GB free below {cache.directory()}"
    if machine.disk >= needed * GIB:
        return Finding("disk", Level.OK, detail)
    remedy = "Free some space, or set XDG_CACHE_HOME to a directory on a larger disk."
    return Finding("disk", Level.FAIL, f"{detail}, {needed} are needed {why}.", remedy)


def _go(machine: Machine) -> Finding:
    if machine.built:
        return Finding("Go", Level.OK, "not needed, Kubernetes is in the cache")
    version = ".".join(map(str, machine.go))
    if machine.go >= NEEDED_GO:
        return Finding("Go", Level.OK, version)
    detail = f"version {version} is too old." if version else "not installed."
    return Finding("Go", Level.FAIL, detail, golang.INSTALL)


def _packages(machine: Machine) -> Finding:
    if not machine.missing:
        return Finding("packages", Level.OK, ", ".join(sorted(TOOLS)))
    names = " ".join(machine.missing)
    remedy = f"Install: `apt-get install {names}`." if machine.apt else f"Install {names} with your package manager."
    return Finding("packages", Level.FAIL, f"not installed: {names}.", remedy)
