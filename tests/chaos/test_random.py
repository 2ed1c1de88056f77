"""A seeded mix of everything that may happen to NodeSets.

KUBESLURM_CHAOS_SECONDS says for how long, KUBESLURM_CHAOS_SEED repeats an earlier run.
"""

import os

import pytest

from tests.chaos.driver import Driver
from tests.chaos.stage import chosen_seed
from tests.support.slurm import Slurm

TEN_MINUTES = 600


@pytest.mark.longest(7200)
def test_random_acts_never_cost_a_job_and_everything_converges(
    slurm: Slurm, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = float(os.environ.get("KUBESLURM_CHAOS_SECONDS") or TEN_MINUTES)
    Driver(slurm, chosen_seed(capsys), wide=True).run(seconds)
