"""Whose reason a Slurm node carries."""

import pytest

from kubeslurm.decide.nodeset.slurm.reasons import foreign_reason, is_refused
from tests.support.workers import slurm_node

REFUSALS = {
    "gres/gpu count reported lower than configured (3 < 8)": True,
    "Low socket*core*thread count, Low CPUs": True,
    "Low socket*core count": True,
    "Low CPUs": True,
    "Low TmpDisk": True,
    "Low RealMemory (reported:24105 < 100.00% of configured:32000)": True,
    "gres/gpu 3 dead, RMA": False,
    "Low RealMemory since DIMM 4 died": False,
    "Low CPUs fan speed": False,
    "Low on coolant": False,
}


@pytest.mark.parametrize(("reason", "slurms"), REFUSALS.items(), ids=REFUSALS)
def test_only_slurms_own_sentences_count_as_a_refusal(reason: str, slurms: bool) -> None:
    assert is_refused(slurm_node(1, "IDLE", "DRAIN", "INVALID_REG", reason=reason)) is slurms


@pytest.mark.parametrize("reason", ["Not responding to IPMI, do not use", "Node unexpectedly rebooted twice: RMA"])
def test_an_admins_reason_that_begins_as_one_of_slurms_is_the_admins(reason: str) -> None:
    assert foreign_reason(slurm_node(1, "DOWN", reason=reason)) == reason


@pytest.mark.parametrize("reason", ["Not responding", "Node unexpectedly rebooted"])
def test_a_reason_that_slurmctld_writes_is_nobodys_decision(reason: str) -> None:
    assert foreign_reason(slurm_node(1, "DOWN", reason=reason)) == ""
