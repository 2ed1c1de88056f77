"""Outages of minutes: what the end-to-end tests see in seconds holds for longer, too."""

from tests.e2e.faults.test_operator_away import go_without_operator
from tests.e2e.users.accounting.test_outage import go_without_records, recorded
from tests.support.site import Records, Site
from tests.support.slurm import Slurm


def test_jobs_run_and_changes_wait_while_the_operator_is_away_for_a_minute(slurm: Slurm) -> None:
    go_without_operator(slurm, 60)


def test_jobs_that_end_in_two_minutes_without_records_are_recorded(site: Site, plain: Records) -> None:
    outage = go_without_records(site, plain, 120)
    assert recorded(plain, outage.without_slurmdbd) == outage.without_slurmdbd
    assert recorded(site, outage.without_database) == outage.without_database
