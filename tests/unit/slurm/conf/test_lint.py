"""What the lint finds, where, and in which words."""

import pytest

from kubeslurm.slurm import conf

GOOD = """ClusterName=a
SlurmctldHost=c
NodeSet=gpu Feature=gpu
PartitionName=gpu Nodes=gpu Default=YES MaxTime=UNLIMITED
PartitionName=all Nodes=ALL
"""


def found(**files: str) -> list[str]:
    texts = {name.replace("_", "."): text for name, text in files.items()}
    return [str(problem) for problem in conf.lint({"slurm.conf": GOOD, **texts})]


def test_good_files_pass() -> None:
    topology = "- topology: t\n  cluster_default: true\n  block:\n    block_sizes: [4]\n    blocks:\n    - block: b1\n"
    tree = (
        "- topology: u\n  tree: {switches: [{switch: root, children: 'leaf[1-2]'}, {switch: leaf1}, {switch: leaf2}]}\n"
    )
    files = {
        "cgroup_conf": "CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n",
        "gres_conf": "AutoDetect=off\nName=gpu Type=h100 File=/dev/nvidia[0-7]\n",
    }
    assert found(**files, topology_yaml=topology + tree) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("MaxJobCont=5", "unknown key MaxJobCont; did you mean MaxJobCount?"),
        ("Zzz=5", "unknown key Zzz"),
        ("PartitionName=x Nodes=gpu MaxTme=5", "unknown key MaxTme; did you mean MaxTime?"),
        ("MaxJobCount=many", "MaxJobCount=many: a whole number is expected"),
        ("MaxJobCount=", "MaxJobCount has no value"),
        ("PartitionName=x Nodes=gpu Default=maybe", "Default=maybe: YES or NO is expected"),
        ("hello world", "cannot read 'hello world': Key=Value is expected"),
        ("PartitionName=x Nodes=cpu", "partition x: cpu is neither a NodeSet nor a node here"),
        ("PartitionName=x Nodes=gpu,n[1-1]", "partition x: n1 is neither a NodeSet nor a node here"),
        ("SlurmctldParameters=enable_stepmgr", "enable_stepmgr needs PrologFlags=Contain"),
        ("Include more.conf", "Include more.conf: there is no such file among the configuration files"),
        ("PartitionName=all Nodes=ALL", "PartitionName=all was already given in line 5"),
    ],
)
def test_mistakes_in_slurm_conf_are_told_with_their_line(line: str, message: str) -> None:
    assert found(slurm_conf=GOOD + line + "\n") == [f"slurm.conf:6: {message}"]


def test_a_topology_plugin_without_its_file_is_told() -> None:
    assert "topology.yaml" in found(slurm_conf=GOOD + "TopologyPlugin=topology/tree\n")[0]
    assert found(slurm_conf=GOOD + "TopologyPlugin=topology/tree\n", topology_conf="SwitchName=s Nodes=n1\n") == []


def test_missing_essentials_are_told() -> None:
    assert found(slurm_conf="# nothing\n") == [
        "slurm.conf: ClusterName is missing",
        "slurm.conf: SlurmctldHost is missing",
    ]


def test_nodes_of_the_file_may_be_named_in_partitions() -> None:
    assert found(slurm_conf=GOOD + "NodeName=n[1-4] CPUs=2\nPartitionName=x Nodes=n[2-3],gpu\n") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Konstrain=1\n", "cgroup.conf:1: unknown key Konstrain"),
        (
            "\nCgroupPlugin=v2\n",
            "cgroup.conf:2: CgroupPlugin=v2: one of autodetect, disabled, cgroup/v1, cgroup/v2 is expected",
        ),
    ],
)
def test_mistakes_in_cgroup_conf_are_told(text: str, message: str) -> None:
    assert found(cgroup_conf=text) == [message]


def test_plugins_that_need_cgroups_are_told_when_cgroups_are_off() -> None:
    conf_text = GOOD + "ProctrackType=proctrack/cgroup\nTaskPlugin=task/none\n"
    problems = found(slurm_conf=conf_text, cgroup_conf="CgroupPlugin=disabled\n")
    assert problems == [
        "cgroup.conf:1: CgroupPlugin=disabled, but ProctrackType is proctrack/cgroup: workers will not start"
    ]


def test_mistakes_in_gres_conf_are_told() -> None:
    assert found(gres_conf="Name=gpu Fille=/dev/null\n") == ["gres.conf:1: unknown key Fille; did you mean File?"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- topology: [\n", "topology.yaml:2: not valid YAML"),
        ("a: b\n", "topology.yaml: a list of topologies is expected"),
        ("- tree: {switches: [{switch: s}]}\n", "topology.yaml: a topology has no name"),
        ("- topology: t\n", "topology.yaml: topology t: exactly one of"),
        (
            "- topology: t\n  tree: {switches: [{switch: s, children: x}]}\n",
            "topology.yaml: topology t: switch s names x",
        ),
        ("- topology: t\n  block: {blocks: [{block: b}]}\n", "topology.yaml: topology t: block_sizes must be"),
        ("- topology: t\n  flat: true\n  bogus: 1\n", "topology.yaml: topology t: unknown key bogus"),
        ("- topology: t\n  flat: true\n- topology: t\n  flat: true\n", "topology.yaml: topology t is defined twice"),
    ],
)
def test_mistakes_in_topology_yaml_are_told(text: str, message: str) -> None:
    assert found(topology_yaml=text)[0].startswith(message)


def test_errors_come_before_warnings() -> None:
    text = GOOD + "PartitionName=all Nodes=ALL\nMaxJobCount=many\n"
    assert [problem.severity for problem in conf.lint({"slurm.conf": text})] == ["error", "warning"]


def test_a_key_of_another_release_is_a_remark_where_a_trial_decides_and_an_error_where_none_does() -> None:
    files = {"slurm.conf": GOOD + "Newest=1\n", "cgroup.conf": "Newest=1\n", "gres.conf": "Newest=1\n"}
    assert {problem.file: problem.severity for problem in conf.lint(files)} == {
        "slurm.conf": "warning",
        "cgroup.conf": "error",
        "gres.conf": "error",
    }
