import msgspec

from kubeslurm.decide.config.running import Running, has_read, late_workers
from kubeslurm.slurm.rest.models import Node


def node(name: str, state: list[str], started: int) -> Node:
    number = {"set": True, "infinite": False, "number": started}
    return msgspec.convert({"name": name, "state": state, "slurmd_start_time": number}, Node)


def test_slurmctld_has_read_the_files_when_it_started_over_and_the_checksum_is_right() -> None:
    before = Running(checksum=1, read_at=100)
    assert has_read(2, before, Running(checksum=2, read_at=101))
    assert not has_read(2, before, Running(checksum=2, read_at=100))
    assert not has_read(2, before, Running(checksum=1, read_at=101))
    assert has_read(None, before, Running(checksum=9, read_at=101))


def test_only_workers_that_answer_are_expected_to_follow() -> None:
    nodes = [
        node("a", ["IDLE"], 200),
        node("b", ["IDLE"], 99),
        node("c", ["DOWN"], 1),
        node("d", ["IDLE", "NOT_RESPONDING"], 1),
        node("e", ["IDLE", "EXTERNAL"], 0),
    ]
    assert late_workers(nodes, 100) == ["b"]
