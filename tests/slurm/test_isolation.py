"""Jobs are confined in cores and memory inside the worker, on machines with cgroup v1 hierarchies."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.hosts import until
from tests.slurm.lab import CONF, Lab, answers, idle

HIERARCHIES = ("cpuset", "memory", "devices", "freezer", "cpuacct")
CGROUP_CONF = """\
CgroupPlugin=cgroup/v1
IgnoreSystemd=yes
ConstrainCores=yes
ConstrainRAMSpace=yes
ConstrainDevices=yes
"""
CONFINED = CONF.replace("proctrack/linuxproc", "proctrack/cgroup").replace("task/none", "task/cgroup,task/affinity")


@pytest.fixture
def cgroups() -> Iterator[dict[str, Path]]:
    """A group of our own in each hierarchy, for the worker to see as the whole of it."""
    groups = {name: Path("/sys/fs/cgroup") / name / f"kubeslurm-test-{os.getpid()}" for name in HIERARCHIES}
    for group in groups.values():
        group.mkdir()
    for file in ("cpuset.cpus", "cpuset.mems"):
        (groups["cpuset"] / file).write_text((groups["cpuset"].parent / file).read_text())
    try:
        yield {f"/sys/fs/cgroup/{name}": group for name, group in groups.items()}
    finally:
        for group in groups.values():
            until(lambda group=group: _removed(group), f"{group} is still in use")  # type: ignore[misc]


def _removed(group: Path) -> bool:
    for folder, _, _ in os.walk(group, topdown=False):
        try:
            Path(folder).rmdir()
        except OSError:
            return False
    return True


def test_a_job_gets_its_cores_and_memory_and_no_more(lab: Lab, cgroups: dict[str, Path]) -> None:
    lab.write("slurm.conf", f"{CONFINED}PrologFlags=Contain\n")
    lab.write("cgroup.conf", CGROUP_CONF)
    controller = lab.slurmctld()
    answers(controller)
    worker = lab.slurmd("n1", binds=cgroups)
    idle(controller, "n1")

    assert controller.run("srun", "-n1", "--mem=100", "nproc").strip() == "1"

    greedy = "head -c 400M /dev/zero | tail -c 399M > /dev/null"
    job = controller.run("sbatch", "--parsable", "-n1", "--mem=100", "-o", "/dev/null", "--wrap", greedy).strip()
    until(lambda: "OUT_OF_MEMORY" in controller.run("scontrol", "show", "job", job), "the job was not stopped", 30)
    assert worker.terminate() == 0
