"""Which lines stay in slurm.conf although nothing asks for them any more."""

import pytest

from kubeslurm.decide.config.kept_lines import Cause, Use, dropped, keep
from kubeslurm.slurm.conf.records import Record, records

GPU = "NodeSet=gpu Feature=gpu\nPartitionName=gpu Nodes=gpu Default=YES State=UP\n"
CPU = "NodeSet=cpu Feature=cpu\nPartitionName=cpu Nodes=cpu\n"
NOBODY = Use(served=frozenset(), jobs={"gpu": 0}, running=True)


def lines(text: str) -> list[Record]:
    return records({"slurm.conf": text})


def kept(old: str, new: str, use: Use) -> list[tuple[str, Cause]]:
    gone = dropped(lines(old), lines(new))
    return [(line.record.text, line.cause) for line in keep(gone, lines(new), use)]


def test_lines_that_are_desired_are_not_kept_a_second_time() -> None:
    assert kept(GPU + CPU, CPU + GPU, Use()) == []


def test_lines_of_a_nodeset_without_workers_and_jobs_go() -> None:
    assert kept(GPU + CPU, CPU, NOBODY) == []


def test_lines_stay_as_they_are_while_workers_of_a_vanished_nodeset_run() -> None:
    use = Use(served=frozenset({"gpu"}), jobs={"gpu": 0}, running=True)
    assert kept(GPU, "", use) == [(line, Cause.WORKERS) for line in GPU.splitlines()]


def test_another_hostname_keeps_the_lines_of_the_old_workers_beside_the_new_ones() -> None:
    use = Use(served=frozenset({"gpu", "a100"}), jobs={"gpu": 2}, running=True)
    renamed = "NodeSet=a100 Feature=a100\nPartitionName=a100 Nodes=a100 Default=YES\n"
    assert kept(GPU, renamed, use) == [
        ("NodeSet=gpu Feature=gpu", Cause.WORKERS),
        ("PartitionName=gpu Nodes=gpu State=UP", Cause.WORKERS),
    ]


@pytest.mark.parametrize("use", [Use(), Use(served=frozenset(), jobs={"gpu": None}), Use(jobs={"gpu": None})])
def test_lines_stay_as_they_are_while_slurm_cannot_be_asked(use: Use) -> None:
    found = kept(GPU, "", use)
    assert [text for text, _ in found] == GPU.splitlines()
    assert found[1][1] is Cause.UNKNOWN


def test_a_partition_with_jobs_stays_with_its_nodeset_and_is_closed() -> None:
    use = Use(served=frozenset(), jobs={"gpu": 1}, running=True)
    assert kept(GPU, "", use) == [
        ("NodeSet=gpu Feature=gpu", Cause.NEEDED),
        ("PartitionName=gpu Nodes=gpu State=DRAIN", Cause.JOBS),
    ]


DISABLED = "NodeSet=gpu Feature=gpu\n"
CLOSED = "PartitionName=gpu Nodes=gpu State=DRAIN"
BUSY = Use(served=frozenset({"gpu"}), jobs={"gpu": 1}, running=True)
IDLE = Use(served=frozenset({"gpu"}), jobs={"gpu": 0}, running=True)
NOT_YET = Use(served=frozenset({"gpu"}), jobs={"gpu": 0}, running=False)


@pytest.mark.parametrize(
    ("old", "use", "found"),
    [
        (GPU, BUSY, [(CLOSED, Cause.JOBS)]),
        (GPU, IDLE, [(CLOSED, Cause.CLOSING)]),
        (f"{DISABLED}{CLOSED}", BUSY, [(CLOSED, Cause.JOBS)]),
        (f"{DISABLED}{CLOSED}", NOT_YET, [(CLOSED, Cause.CLOSING)]),
        (f"{DISABLED}{CLOSED}", IDLE, []),
    ],
)
def test_a_disabled_partition_is_closed_before_it_is_removed(
    old: str, use: Use, found: list[tuple[str, Cause]]
) -> None:
    assert kept(old, DISABLED, use) == found


def test_jobs_that_must_not_start_do_not_start_because_their_partition_is_closed() -> None:
    old = "PartitionName=gpu Nodes=ALL State=down MaxTime=5\n"
    assert kept(old, "", BUSY) == [("PartitionName=gpu Nodes=ALL MaxTime=5 State=INACTIVE", Cause.JOBS)]


def test_nodes_of_the_file_stay_with_the_partition_that_names_them() -> None:
    nodes = "NodeName=n[1-2] CPUs=4\nNodeName=n3 CPUs=8\n"
    old = f"{nodes}NodeSet=some Nodes=n[1-2]\nPartitionName=gpu Nodes=some\n"
    use = Use(served=frozenset(), jobs={"gpu": 1}, running=True)
    assert [text for text, _ in kept(old, "", use)] == [
        "NodeName=n[1-2] CPUs=4",
        "NodeSet=some Nodes=n[1-2]",
        "PartitionName=gpu Nodes=some State=DRAIN",
    ]


def test_partitions_of_included_files_are_found() -> None:
    files = {
        "slurm.conf": "Include /etc/slurm/parts.conf\nInclude away.conf\n",
        "parts.conf": "PartitionName=gpu Nodes=ALL\n",
    }
    assert [record.name for record in records(files)] == ["gpu"]


def test_files_that_include_each_other_are_read_once() -> None:
    assert records({"slurm.conf": "Include a.conf\n", "a.conf": "Include slurm.conf\nPartitionName=x Nodes=ALL\n"})
