import pytest

from kubeslurm.cli.up import slurm_nodes

STARTED = 1_800_000_000


def node(state: str, started: str = str(STARTED)) -> slurm_nodes.SlurmNode:
    line = (
        f"NodeName=worker-0 Arch=x86_64 CoresPerSocket=1 OS=Linux 6.1 #1 SMP State={state} ThreadsPerCore=1 "
        f"BootTime={started} SlurmdStartTime={started} LastBusyTime={started} Reason=State=IDLE in words [root@1]"
    )
    (found,) = slurm_nodes.parse(f"{line}\n")
    return found


@pytest.mark.parametrize(
    ("state", "usable"),
    [
        ("IDLE+DYNAMIC_NORM", True),
        ("MIXED+DYNAMIC_NORM", True),
        ("ALLOCATED+DYNAMIC_NORM+COMPLETING", True),
        ("IDLE*+DYNAMIC_NORM", False),
        ("DOWN+DYNAMIC_NORM", False),
        ("IDLE+DRAIN+DYNAMIC_NORM", False),
        ("IDLE+DYNAMIC_NORM+NOT_RESPONDING", False),
        ("IDLE+DRAIN+DYNAMIC_NORM+INVALID_REG", False),
        ("UNKNOWN", False),
    ],
)
def test_a_node_is_usable_if_it_takes_jobs_and_answers(state: str, usable: bool) -> None:
    assert node(state).usable(0.0) is usable


def test_a_node_that_looks_idle_but_has_not_registered_since_the_start_is_not_usable() -> None:
    assert not node("IDLE+DYNAMIC_NORM").usable(STARTED + 1.5)
    assert node("IDLE+DYNAMIC_NORM").usable(STARTED + 0.5)


@pytest.mark.parametrize("started", ["None", "Unknown", ""])
def test_a_node_that_never_registered_has_no_start_time(started: str) -> None:
    assert node("IDLE+DYNAMIC_NORM", started).started == 0


def test_only_nodes_with_jobs_are_busy() -> None:
    assert node("MIXED+DYNAMIC_NORM").busy
    assert not node("IDLE+DYNAMIC_NORM").busy


def test_other_lines_are_ignored() -> None:
    assert slurm_nodes.parse("No nodes in the system\n") == []
