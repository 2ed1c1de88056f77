"""slurmdbd or its database away: jobs go on, and afterwards every one of them is recorded with its right end."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import msgspec
import pytest

from tests.support.site import ACCOUNTING, SLOWLY, Records, Site
from tests.support.waiting import wait_for

DATABASE = "slurm-mariadb"
SLURMDBD = "slurm-accounting-0"
AWAY = 30  # seconds; `make chaos` has longer ones


class Outage(msgspec.Struct, frozen=True):
    """The ends of jobs meanwhile, as slurmctld knows them, and what accounting said of the database."""

    without_slurmdbd: dict[int, str]
    without_database: dict[int, str]
    said: str


@pytest.fixture(scope="module")
def outage(site: Site, plain: Records) -> Outage:
    return go_without_records(site, plain, AWAY)


def go_without_records(site: Site, plain: Records, seconds: int) -> Outage:
    """A time in which one cluster has no slurmdbd and the other no database, with jobs that end on both."""
    with slurmdbd_away(plain), database_away(site):
        of_plain = [plain.submit(script) for script in ("true", f"sleep {seconds}")]
        of_site = [site.submit_as("alice", "true"), site.submit_as("bob", f"sleep {seconds}")]
        said = site.wait_for_condition(ACCOUNTING, "slurm", "Degraded", "DatabaseNotReachable")
        return Outage(ends(plain, of_plain, seconds), ends(site, of_site, seconds), said)


@contextmanager
def slurmdbd_away(cluster: Records) -> Iterator[None]:
    place_slurmdbd(cluster, "yes")
    try:
        wait_for("slurmdbd to go", lambda: is_pending(cluster))
        yield
    finally:
        place_slurmdbd(cluster, None)


@contextmanager
def database_away(site: Site) -> Iterator[None]:
    site.kubectl("scale", "statefulset", DATABASE, "--replicas=0")
    try:
        wait_for("the database to go", lambda: site.find("pod", f"{DATABASE}-0") is None)
        yield
    finally:
        site.kubectl("scale", "statefulset", DATABASE, "--replicas=1")


def place_slurmdbd(cluster: Records, nowhere: str | None) -> None:
    """Asks for a node that does not exist, or no longer does."""
    cluster.patch(ACCOUNTING, "slurm", {"spec": {"template": {"spec": {"nodeSelector": {"nowhere": nowhere}}}}})


def is_pending(cluster: Records) -> bool:
    pod = cluster.find("pod", SLURMDBD)
    return pod is not None and pod["status"]["phase"] == "Pending"


def ends(cluster: Records, jobs: list[int], seconds: int) -> dict[int, str]:
    for job in jobs:
        cluster.wait_for_job(job, "COMPLETED", within=seconds + SLOWLY)
    return {job: end_in_slurm(cluster, job) for job in jobs}


def end_in_slurm(cluster: Records, job: int) -> str:
    found = json.loads(cluster.run("scontrol", "show", "job", str(job), "--json"))["jobs"][0]
    return cluster.run("date", "--utc", f"--date=@{found['end_time']['number']}", "+%Y-%m-%dT%H:%M:%S").strip()


def recorded(cluster: Records, jobs: Iterable[int]) -> dict[int, str]:
    """When each job has ended, by its record."""
    return {job: cluster.wait_until_recorded(job)["End"] for job in jobs}


def test_jobs_that_end_while_slurmdbd_is_away_are_recorded(plain: Records, outage: Outage) -> None:
    assert recorded(plain, outage.without_slurmdbd) == outage.without_slurmdbd


def test_jobs_that_end_while_the_database_is_away_are_recorded(site: Site, outage: Outage) -> None:
    assert recorded(site, outage.without_database) == outage.without_database


def test_a_database_that_is_away_is_named(outage: Outage) -> None:
    assert DATABASE in outage.said
