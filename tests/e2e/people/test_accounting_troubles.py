"""Accounting that cannot work says what is wrong and what to do."""

from collections.abc import Iterator

import pytest

from tests.support.site import ACCOUNTING, Site
from tests.support.slurm import wait_for


def use_password_of(site: Site, secret: str) -> None:
    ref = {"name": secret, "key": "password"}
    site.patch(ACCOUNTING, "slurm", {"spec": {"storageConfig": {"passwordKeyRef": ref}}})


@pytest.fixture
def restored(site: Site) -> Iterator[None]:
    yield
    use_password_of(site, "slurm-mariadb")
    wait_for("accounting to be well", lambda: well(site), within=150)
    site.kubectl("delete", "secret", "wrong", "--ignore-not-found")


def well(site: Site) -> bool:
    found = site.conditions(ACCOUNTING)
    return found["Ready"]["status"] == "True" and found["Degraded"]["status"] == "False"


@pytest.mark.usefixtures("restored")
def test_a_wrong_password_names_the_secret_that_holds_it(site: Site) -> None:
    site.kubectl("create", "secret", "generic", "wrong", "--from-literal=password=wrong")
    use_password_of(site, "wrong")
    message = site.wait_for_condition(ACCOUNTING, "slurm", "Degraded", "DatabaseAccessDenied")
    assert "people/wrong" in message


@pytest.mark.usefixtures("restored")
def test_a_missing_password_is_named(site: Site) -> None:
    use_password_of(site, "nothing")
    message = site.wait_for_condition(ACCOUNTING, "slurm", "Degraded", "KeyMissing")
    assert "people/nothing" in message


def test_a_changed_password_is_followed_by_both_sides(site: Site) -> None:
    before = site.get("pod", "slurm-accounting-0")["metadata"]["uid"]
    site.kubectl("patch", "secret", "slurm-mariadb", "--type=merge", '--patch={"stringData":{"password":"another"}}')
    wait_for(
        "a new slurmdbd", lambda: (pod := site.find("pod", "slurm-accounting-0")) and pod["metadata"]["uid"] != before
    )
    wait_for("accounting to be well", lambda: well(site), within=200, every=1.0)
