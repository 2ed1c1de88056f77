"""Whose reason a Slurm node carries."""

import pytest

from kubeslurm.decide.nodeset.slurm.reasons import is_refused
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
