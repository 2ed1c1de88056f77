"""Accounting that cannot work says what is wrong and what to do."""

from collections.abc import Iterator

import pytest

from tests.support.site import ACCOUNTING, SLOWLY, Site
from tests.support.waiting import wait_for

SECRET = "slurm-mariadb"
SETTING = "innodb_snapshot_isolation"


def use_password_of(site: Site, secret: str) -> None:
    ref = {"name": secret, "key": "password"}
    site.patch(ACCOUNTING, "slurm", {"spec": {"storageConfig": {"passwordKeyRef": ref}}})


@pytest.fixture(scope="module", autouse=True)
def restored(site: Site) -> Iterator[None]:
    wait_for("accounting to be well", site.records_well, within=SLOWLY)
    yield
    site.database(f"SET GLOBAL {SETTING}=OFF")
    use_password_of(site, SECRET)
    site.kubectl("delete", "secret", "wrong", "--ignore-not-found")
    site.kubectl("delete", "pod", "slurm-accounting-0", "--ignore-not-found")
    wait_for("accounting to be well", site.records_well, within=SLOWLY)


def test_a_database_without_a_needed_setting_is_told_its_name_and_value(site: Site) -> None:
    site.database(f"SET GLOBAL {SETTING}=ON")
    try:
        use_password_of(site, SECRET)
        site.kubectl("delete", "pod", "slurm-accounting-0", "--ignore-not-found")  # slurmdbd looks only when it starts
        message = site.wait_for_condition(ACCOUNTING, "slurm", "Degraded", "DatabaseMisconfigured")
    finally:
        site.database(f"SET GLOBAL {SETTING}=OFF")
    assert f"{SETTING}=OFF" in message


def test_a_wrong_password_names_the_secret_that_holds_it(site: Site) -> None:
    site.kubectl("create", "secret", "generic", "wrong", "--from-literal=password=wrong")
    use_password_of(site, "wrong")
    message = site.wait_for_condition(ACCOUNTING, "slurm", "Degraded", "DatabaseAccessDenied")
    assert "site/wrong" in message


def test_a_missing_password_is_named(site: Site) -> None:
    use_password_of(site, "nothing")
    message = site.wait_for_condition(ACCOUNTING, "slurm", "Degraded", "SecretKeyNotFound")
    assert "site/nothing" in message


def test_a_changed_password_is_followed_by_both_sides(site: Site) -> None:
    # Slurm's files need most of these characters escaped.
    site.patch("secret", SECRET, {"stringData": {"password": "an#other 'pass\\word"}})
    use_password_of(site, SECRET)
    # The kubelet looks again at once, not in a minute.
    site.kubectl("annotate", "--overwrite", "pod", "slurm-mariadb-0", "password=changed")
    wait_for("accounting to be well", site.records_well, within=SLOWLY)
    site.wait_until_recorded(site.submit_as("alice", "true"))
    count = (
        "SELECT COUNT(*) FROM mysql.global_priv WHERE User='slurm' "
        "AND Priv LIKE CONCAT('%', PASSWORD('an#other ''pass\\\\word'), '%')"
    )
    wait_for("the database to follow", lambda: site.database(count).strip() == "1", within=SLOWLY)
