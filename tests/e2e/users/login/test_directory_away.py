"""The directory of users is away: the login set says so, known users still get in."""

from collections.abc import Iterator

import pytest

from tests.support.site import ADMINS, LOGIN, LOGINSET, SLOWLY, Site
from tests.support.waiting import wait_for


@pytest.fixture
def restored(site: Site) -> Iterator[None]:
    yield
    site.kubectl("scale", "deployment", "directory", "--replicas=1")
    wait_for("the directory", lambda: is_back(site), within=SLOWLY, every=1.0)


def is_back(site: Site) -> bool:
    """Whether all login pods have heard of it again."""
    return all(site.conditions(LOGINSET, name)["Degraded"]["status"] == "False" for name in (LOGIN, ADMINS))


@pytest.mark.usefixtures("restored")
def test_a_directory_that_is_away_is_said_and_known_users_still_log_in(site: Site) -> None:
    pod = site.login_pods()[0]
    site.ssh("alice", "true", pod=pod)
    site.kubectl("scale", "deployment", "directory", "--replicas=0")
    message = site.wait_for_condition(LOGINSET, LOGIN, "Degraded", "DirectoryNotReachable")
    assert "slurm-sssd-conf" in message
    assert site.ssh("alice", "echo in", pod=pod).strip() == "in"
