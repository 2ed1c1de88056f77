"""The lint and slurmctld agree on what is wrong."""

from collections.abc import AsyncIterator, Iterator

import pytest

from kubeslurm.slurm import conf
from kubeslurm.slurm.errors import Refused
from kubeslurm.slurm.rest.client import SlurmClient
from tests.slurm.lab import CONF, Lab, Roots, answers

BAD = [
    "MaxJobCount=many",
    "MaxJobCount=",
    "hello world",
    "TrackWCKey=maybe",
    "PartitionName=x Nodes=ALL Default=maybe",
    "PartitionName=x Nodes=nowhere",
    "PartitionName=x Nodes=w,nowhere",
    "SlurmctldParameters=enable_stepmgr",
]
UNKNOWN = ["Bogus=1", "PartitionName=x Nodes=ALL Bogus=1"]
GOOD = [
    "MaxJobCount=1234",
    "maxjobcount = 4321",
    "PartitionName=x Nodes=w MaxTime=UNLIMITED State=UP OverSubscribe=NO PriorityTier=5",
    "PrologFlags=Contain\nSlurmctldParameters=enable_stepmgr,enable_configless",
    "MaxJobCount=5 # five\nSchedulerParameters=defer,\\\nbf_interval=10",
    "NodeSet=other Feature=x\nPartitionName=y Nodes=other,w",
    "TopologyPlugin=topology/flat",
]


@pytest.fixture(scope="module")
def running(roots: Roots, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab(roots, tmp_path_factory.mktemp("lab"))
    try:
        answers(lab.slurmctld())
        lab.slurmrestd()
        yield lab
    finally:
        lab.close()


@pytest.fixture
async def client(running: Lab) -> AsyncIterator[SlurmClient]:
    client = running.client()
    yield client
    await client.close()


@pytest.mark.parametrize("line", BAD)
async def test_what_slurmctld_refuses_the_lint_finds(line: str, running: Lab, client: SlurmClient) -> None:
    text = f"{CONF}{line}\n"
    assert any(problem.severity == "error" and problem.line for problem in conf.lint({"slurm.conf": text}))
    running.write("slurm.conf", text)
    with pytest.raises(Refused):
        await client.reconfigure()


@pytest.mark.parametrize("line", UNKNOWN)
async def test_a_key_that_slurmctld_does_not_know_is_left_to_it(line: str, running: Lab, client: SlurmClient) -> None:
    text = f"{CONF}{line}\n"
    (remark,) = conf.lint({"slurm.conf": text, "cgroup.conf": "CgroupPlugin=disabled\n"})
    assert remark.severity == "warning"
    assert "unknown key Bogus" in remark.message
    running.write("slurm.conf", text)
    with pytest.raises(Refused):
        await client.reconfigure()


@pytest.mark.parametrize("line", GOOD)
async def test_what_slurmctld_takes_the_lint_lets_through(line: str, running: Lab, client: SlurmClient) -> None:
    text = f"{CONF}{line}\n"
    assert conf.lint({"slurm.conf": text, "cgroup.conf": "CgroupPlugin=disabled\n"}) == []
    running.write("slurm.conf", text)
    await client.reconfigure()


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("- topology: t\n  bogus: 1\n", False),
        ("- topology: t\n  tree:\n", False),
        ("- topology: t\n  flat: true\n  cluster_default: true\n", True),
        ("- topology: t\n  block:\n    block_sizes: [2]\n    blocks:\n    - block: b1\n", True),
        ("- topology: t\n  tree:\n    switches:\n    - switch: s\n      children: leaf\n    - switch: leaf\n", True),
        ("- topology: t\n  tree:\n    switches:\n    - switch: s\n      children: leaf\n", False),
    ],
)
async def test_both_judge_a_topology_alike(text: str, good: bool, running: Lab, client: SlurmClient) -> None:
    running.write("slurm.conf", CONF)
    running.write("topology.yaml", text)
    try:
        await client.reconfigure()
        accepted = True
    except Refused:
        accepted = False
    finally:
        running.remove("topology.yaml")
    assert accepted == good
    assert (conf.lint({"slurm.conf": CONF, "topology.yaml": text}) == []) == good


async def test_cgroup_plugins_that_slurm_uses_by_default_are_the_ones_that_the_lint_expects(
    running: Lab, client: SlurmClient
) -> None:
    running.write("slurm.conf", CONF.replace("ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n", ""))
    await client.reconfigure()
    live = await client.conf()
    assert live is not None
    assert (live.values["ProctrackType"], live.values["TaskPlugin"]) == ("proctrack/cgroup", [])
