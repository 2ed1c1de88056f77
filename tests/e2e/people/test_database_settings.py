"""A database server without the settings that slurmdbd needs is told what to set."""

from collections.abc import Iterator

import pytest

from tests.support.site import ACCOUNTING, Site
from tests.support.slurm import wait_for

SETTING = "innodb_snapshot_isolation"


def serve_with(site: Site, value: str) -> None:
    """Restarts the database with a setting, and then slurmdbd, which looks at it only when it starts."""
    before = site.get("pod", "slurm-mariadb-0")["metadata"]["uid"]
    site.install({"accounting": {"mariadb": {"settings": {SETTING: value}}}})
    wait_for("another database", lambda: is_new(site, before), within=150)
    site.kubectl("delete", "pod", "slurm-accounting-0")


def is_new(site: Site, before: str) -> bool:
    pod = site.find("pod", "slurm-mariadb-0")
    if pod is None or pod["metadata"]["uid"] == before:
        return False
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", []))


@pytest.fixture
def restored(site: Site) -> Iterator[None]:
    yield
    serve_with(site, "OFF")
    wait_for("accounting to be well", lambda: site.conditions(ACCOUNTING)["Degraded"]["status"] == "False", within=150)


@pytest.mark.usefixtures("restored")
def test_a_missing_setting_is_named_with_its_value(site: Site) -> None:
    serve_with(site, "ON")
    message = site.wait_for_condition(ACCOUNTING, "slurm", "Degraded", "DatabaseSettings")
    assert f"{SETTING}=OFF" in message
