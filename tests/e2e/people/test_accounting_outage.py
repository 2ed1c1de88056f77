"""slurmdbd or its database away: jobs go on, and afterwards every one of them is recorded with its right end."""

import json
from collections.abc import Iterator

import pytest

from tests.support.site import ACCOUNTING, Site
from tests.support.slurm import wait_for

DATABASE = "slurm-mariadb"
AWAY = 120  # seconds


def end_in_slurm(site: Site, job: int) -> str:
    found = json.loads(site.run("scontrol", "show", "job", str(job), "--json"))["jobs"][0]
    return str(site.run("date", "--utc", f"--date=@{found['end_time']['number']}", "+%Y-%m-%dT%H:%M:%S")).strip()


@pytest.fixture
def slurmdbd_back(site: Site) -> Iterator[None]:
    yield
    site.patch(ACCOUNTING, "slurm", {"spec": {"template": {"spec": {"nodeSelector": {"nowhere": None}}}}})


@pytest.fixture
def database_back(site: Site) -> Iterator[None]:
    yield
    site.kubectl("scale", "statefulset", DATABASE, "--replicas=1")


def is_ready(site: Site) -> bool:
    return site.conditions(ACCOUNTING)["Ready"]["status"] == "True"


@pytest.mark.usefixtures("slurmdbd_back")
def test_jobs_that_end_while_slurmdbd_is_away_are_recorded(site: Site) -> None:
    site.patch(ACCOUNTING, "slurm", {"spec": {"template": {"spec": {"nodeSelector": {"nowhere": "yes"}}}}})
    wait_for("slurmdbd to go", lambda: not is_ready(site))
    ends = ended_meanwhile(site)
    site.patch(ACCOUNTING, "slurm", {"spec": {"template": {"spec": {"nodeSelector": {"nowhere": None}}}}})
    wait_for("slurmdbd to be back", lambda: is_ready(site), within=120)
    assert {job: site.wait_until_recorded(job)["End"] for job in ends} == ends


@pytest.mark.usefixtures("database_back")
def test_jobs_that_end_while_the_database_is_away_are_recorded(site: Site) -> None:
    site.kubectl("scale", "statefulset", DATABASE, "--replicas=0")
    wait_for("the database to go", lambda: site.find("pod", f"{DATABASE}-0") is None, within=150)
    ends = ended_meanwhile(site)
    message = site.wait_for_condition(ACCOUNTING, "slurm", "Degraded", "DatabaseNotReachable")
    assert DATABASE in message
    site.kubectl("scale", "statefulset", DATABASE, "--replicas=1")
    assert {job: site.wait_until_recorded(job)["End"] for job in ends} == ends


def ended_meanwhile(site: Site) -> dict[int, str]:
    """A short job and one as long as the outage shall last, with their ends as slurmctld knows them."""
    jobs = [site.submit_as("alice", "true"), site.submit_as("bob", f"sleep {AWAY}")]
    for job in jobs:
        site.wait_for_job(job, "COMPLETED", within=AWAY + 60)
    return {job: end_in_slurm(site, job) for job in jobs}
