"""A seeded mix of everything that may happen to a NodeSet.

KUBESLURM_CHAOS_SECONDS says for how long (a minute by default), KUBESLURM_CHAOS_SEED repeats an earlier run.
"""

import os
import secrets

from tests.chaos.driver import Driver
from tests.support.slurm import Slurm


def test_random_acts_never_cost_a_job_and_everything_converges(slurm: Slurm) -> None:
    seed = int(os.environ.get("KUBESLURM_CHAOS_SEED") or secrets.randbelow(10**6))
    seconds = float(os.environ.get("KUBESLURM_CHAOS_SECONDS") or 60)
    print(f"seed: KUBESLURM_CHAOS_SEED={seed}")  # noqa: T201
    Driver(slurm, seed).run(seconds)
