import subprocess
from typing import Any

import msgspec
import pytest

from kubeslurm.local.host.doctor import GIB, Finding, Level, Machine, evaluate, go_version, inspect

GOOD = Machine(
    root=True,
    capabilities=(1 << 41) - 1,
    cgroups="v2",
    controllers=frozenset({"cpu", "memory", "pids", "io"}),
    filesystems=frozenset({"overlay", "tmpfs", "proc", "ext4"}),
    namespaces=frozenset({"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"}),
    network={"bridge": "", "veth": "", "nftables": ""},
    kmsg=True,
    inotify_instances=128,
    memory=8 * GIB,
    disk=50 * GIB,
    state_disk=50 * GIB,
    built=False,
    go=(1, 26),
    missing=(),
    apt=True,
)


def finding(name: str, **changes: Any) -> Finding:
    machine = msgspec.structs.replace(GOOD, **changes)
    return next(f for f in evaluate(machine) if f.name == name)


def test_a_good_machine_passes_every_check() -> None:
    assert {f.level for f in evaluate(GOOD)} == {Level.OK}


@pytest.mark.parametrize(
    ("name", "changes", "detail", "remedy"),
    [
        ("rights", {"root": False}, "not root", "sudo"),
        ("rights", {"capabilities": GOOD.capabilities & ~(1 << 21)}, "CAP_SYS_ADMIN", "--privileged"),
        ("rights", {"capabilities": GOOD.capabilities & ~(1 << 12)}, "CAP_NET_ADMIN", "--privileged"),
        ("cgroups", {"cgroups": "", "controllers": frozenset()}, "none are mounted", "/sys/fs/cgroup"),
        ("cgroups", {"controllers": frozenset({"cpu", "pids"})}, "v2 layout has no memory", "/sys/fs/cgroup"),
        ("kernel", {"filesystems": frozenset({"tmpfs", "proc"})}, "no overlay", "kernel"),
        ("kernel", {"namespaces": GOOD.namespaces - {"net"}}, "no net namespaces", "kernel"),
        ("network", {"network": {"veth": "not supported", "bridge": ""}}, "veth (not supported)", "modules"),
        ("/dev/kmsg", {"kmsg": False}, "kubelet", "--device"),
        ("memory", {"memory": GIB}, "1.0 GB", "fewer nodes"),
        ("disk", {"disk": 3 * GIB}, "first build", "XDG_CACHE_HOME"),
        ("state", {"state_disk": GIB // 2}, "0.5 GB free", "XDG_STATE_HOME"),
        ("Go", {"go": ()}, "not installed", "1.26"),
        ("Go", {"go": (1, 24)}, "1.24 is too old", "1.26"),
        ("packages", {"missing": ("buildah",)}, "buildah", "apt-get install buildah"),
        ("packages", {"missing": ("buildah",), "apt": False}, "buildah", "package manager"),
    ],
)
def test_a_missing_requirement_fails_with_a_remedy(
    name: str, changes: dict[str, Any], detail: str, remedy: str
) -> None:
    found = finding(name, **changes)
    assert found.level is Level.FAIL
    assert detail in found.detail
    assert remedy in found.remedy


def test_a_missing_cap_sys_resource_is_only_mentioned() -> None:
    found = finding("rights", capabilities=GOOD.capabilities & ~(1 << 24))
    assert found.level is Level.OK
    assert "CAP_SYS_RESOURCE" in found.detail


def test_with_everything_in_the_cache_no_go_and_less_disk_are_required() -> None:
    assert finding("Go", go=(), built=True).level is Level.OK
    assert finding("disk", disk=3 * GIB, built=True).level is Level.OK


def test_few_inotify_instances_and_little_memory_are_warnings() -> None:
    assert finding("inotify", inotify_instances=20).level is Level.WARN
    assert finding("memory", memory=2 * GIB).level is Level.WARN


def test_the_go_version_is_parsed() -> None:
    assert go_version("go1.26.8") == (1, 26)
    assert go_version("") == ()


def test_this_machine_can_be_inspected() -> None:
    assert inspect().memory > 0


def test_a_program_that_times_out_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(argv: list[str], **_: Any) -> None:
        raise subprocess.TimeoutExpired(argv, 120)

    monkeypatch.setattr(subprocess, "run", hang)
    assert inspect().network["bridge"] == "no answer"
