"""Jobs are confined in cores and memory inside the worker, by whichever control groups this machine has."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kubeslurm.local.host import cgroups
from tests.slurm.hosts import wait_for
from tests.slurm.lab import CONF, Lab, account, answers, idle
from tests.support.waiting import WITHIN

MOUNTPOINT = "/sys/fs/cgroup"
CGROUP_CONF = """\
IgnoreSystemd=yes
ConstrainCores=yes
ConstrainRAMSpace=yes
ConstrainDevices=yes
"""
CONFINED = CONF.replace("proctrack/linuxproc", "proctrack/cgroup").replace("task/none", "task/cgroup,task/affinity")


class Groups(NamedTuple):
    """What a worker needs to have groups of its own."""

    plugin: str
    binds: dict[str, Path]
    env: dict[str, str]


def groups_of(layout: cgroups.Layout, group: str) -> Groups:
    """The unified tree as a whole, or the v1 trees by the names of their controllers."""
    directories = layout.directories(group)
    if layout.unified:
        return Groups("cgroup/v2", {MOUNTPOINT: directories[0]}, {"CGROUP": str(directories[0])})
    # Trees without a controller, as systemd has one, are of no use to Slurm; several controllers may share one.
    trees = [(each.options, place) for each, place in zip(layout.hierarchies, directories, strict=True)]
    named = {name: place for options, place in trees if "=" not in options for name in options.split(",")}
    return Groups("cgroup/v1", {f"{MOUNTPOINT}/{name}": place for name, place in named.items()}, {})


@pytest.fixture
def groups() -> Iterator[Groups]:
    """Groups for the worker to see as the whole of each tree."""
    layout, name = cgroups.detect(), f"test-{os.getpid()}"
    cgroups.make(layout, name)
    yield groups_of(layout, name)
    assert cgroups.remove(layout, name, timeout=WITHIN) == []


# The groups come first, so that they go last: a worker of a test that failed still sits in them.
def test_a_job_gets_its_cores_and_memory_and_no_more(groups: Groups, lab: Lab) -> None:
    lab.write("slurm.conf", f"{CONFINED}PrologFlags=Contain\n")
    lab.write("cgroup.conf", f"CgroupPlugin={groups.plugin}\n{CGROUP_CONF}")
    controller = lab.slurmctld()
    answers(controller)
    worker = lab.slurmd("n1", binds=groups.binds, env=groups.env)
    idle(controller, "n1")

    assert controller.run("srun", "-n1", "--mem=100", "nproc").strip() == "1"

    greedy = "head -c 400M /dev/zero | tail -c 399M > /dev/null"
    job = controller.run("sbatch", "--parsable", "-n1", "--mem=100", "-o", "/dev/null", "--wrap", greedy).strip()
    wait_for(
        "the job to be stopped",
        lambda: "OUT_OF_MEMORY" in controller.run("scontrol", "show", "job", job),
        story=lambda: account(controller),
    )
    assert worker.terminate() == 0
