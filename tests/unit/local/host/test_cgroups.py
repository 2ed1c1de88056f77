import signal
import subprocess
from pathlib import Path

import pytest

from kubeslurm.local.host import cgroups

HYBRID = """\
30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/unified rw,relatime shared:10 - cgroup2 cgroup2 rw,nsdelegate
32 30 0:28 / /sys/fs/cgroup/systemd rw,relatime shared:11 - cgroup cgroup rw,xattr,name=systemd
33 30 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:12 - cgroup cgroup rw,cpu,cpuacct
34 30 0:30 / /sys/fs/cgroup/memory rw,relatime shared:13 - cgroup cgroup rw,memory
40 25 0:30 / /other/memory rw,relatime shared:13 - cgroup cgroup rw,memory
"""
UNIFIED = "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n"


def test_a_hybrid_layout_uses_each_v1_hierarchy_once() -> None:
    layout = cgroups.parse(HYBRID)
    assert layout.kind == "hybrid"
    assert {"cpu", "memory"} <= layout.controllers()
    assert {each.mountpoint.name: each.options for each in layout.hierarchies} == {
        "systemd": "none,name=systemd",
        "cpu,cpuacct": "cpu,cpuacct",
        "memory": "memory",
    }


def test_a_unified_layout_has_one_hierarchy() -> None:
    layout = cgroups.parse(UNIFIED)
    assert layout.unified
    assert layout.directories("c") == [Path("/sys/fs/cgroup/kubeslurm/c")]


@pytest.mark.parametrize(
    ("mountinfo", "kind"),
    [
        ("30 1 0:2 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate", "v2"),
        ("30 1 0:2 / /c/cpu rw - cgroup cgroup rw,cpu\n31 1 0:3 / /c/memory rw - cgroup cgroup rw,memory", "v1"),
        ("30 1 0:2 / /c/cpu rw - cgroup cgroup rw,cpu\n31 1 0:3 / /c/unified rw - cgroup2 none rw", "hybrid"),
        ("30 1 0:2 / /c/systemd rw - cgroup c rw,name=systemd\n31 1 0:3 / /c rw - cgroup2 none rw", "v2"),
        ("30 1 0:2 / / rw - ext4 /dev/vda rw", ""),
    ],
)
def test_the_layout_is_detected(mountinfo: str, kind: str) -> None:
    assert cgroups.parse(mountinfo).kind == kind


def test_all_processes_of_a_group_are_killed(tmp_path: Path) -> None:
    layout = cgroups.Layout((cgroups.Hierarchy(tmp_path, "cgroup", "memory"),), "v1")
    (tmp_path / "kubeslurm/one/node-1").mkdir(parents=True)
    with subprocess.Popen(["sleep", "1000"]) as orphan:
        (tmp_path / "kubeslurm/one/node-1/cgroup.procs").write_text(f"0\n{orphan.pid}\n")
        assert cgroups.kill(layout, "one")
        assert orphan.wait(300) == -signal.SIGKILL


def test_a_new_cpuset_gets_the_cpus_of_its_parent(tmp_path: Path) -> None:
    hierarchy = cgroups.Hierarchy(tmp_path, "cgroup", "cpuset")
    for name, value in (("cpuset.cpus", "0-3"), ("cpuset.mems", "0")):
        (tmp_path / name).write_text(value)
        for child in ("kubeslurm", "kubeslurm/c"):
            (tmp_path / child).mkdir(exist_ok=True)
            (tmp_path / child / name).write_text("\n")
    cgroups.make(cgroups.Layout((hierarchy,), "v1"), "c")
    assert (tmp_path / "kubeslurm/c/cpuset.cpus").read_text() == "0-3"


def test_remove_deletes_nested_groups_and_keeps_other_clusters(tmp_path: Path) -> None:
    layout = cgroups.Layout((cgroups.Hierarchy(tmp_path, "cgroup", "memory"),), "v1")
    (tmp_path / "kubeslurm/one/node-1/kubepods/pod").mkdir(parents=True)
    (tmp_path / "kubeslurm/two").mkdir()
    assert cgroups.remove(layout, "one") == []
    assert [path.name for path in (tmp_path / "kubeslurm").iterdir()] == ["two"]
    assert cgroups.remove(layout, "two") == []
    assert not (tmp_path / "kubeslurm").exists()


def test_remove_returns_groups_that_are_still_in_use(tmp_path: Path) -> None:
    layout = cgroups.Layout((cgroups.Hierarchy(tmp_path, "cgroup", "memory"),), "v1")
    (tmp_path / "kubeslurm/one").mkdir(parents=True)
    (tmp_path / "kubeslurm/one/cgroup.procs").touch()  # a regular file keeps rmdir from working, as a process would
    assert cgroups.remove(layout, "one", timeout=0) == [tmp_path / "kubeslurm/one"]
