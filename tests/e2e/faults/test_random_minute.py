"""One minute of the seeded mix of which `make chaos` runs ten."""

import pytest

from tests.chaos.driver import Driver
from tests.chaos.stage import chosen_seed
from tests.support.slurm import Slurm


def test_a_minute_of_random_acts_costs_no_job_and_everything_converges(
    slurm: Slurm, capsys: pytest.CaptureFixture[str]
) -> None:
    Driver(slurm, chosen_seed(capsys)).run(60)
