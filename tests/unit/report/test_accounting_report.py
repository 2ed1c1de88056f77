"""What slurmdbd's log means, in the words of an Accounting's conditions."""

from datetime import UTC, datetime

import pytest

from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.accounting import Accounting
from kubeslurm.api.views import Pod
from kubeslurm.decide.accounting import Facts, is_busy, is_converting
from kubeslurm.report.accounting import status, wrong_settings
from tests.support.manifests import decoded

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STARTED = "slurmdbd version 26.05.5 started\n"
ABSENT = "error: mysql_real_connect failed: 2002 Can't connect to server on 'db' (115)\n"
UNKNOWN_HOST = "error: mysql_real_connect failed: 2005 Unknown server host 'db' (-2)\n"
DENIED = "error: mysql_real_connect failed: 1045 Access denied for user 'slurm'@'10.1.2.3' (using password: YES)\n"
CONVERTING = 'adding column sluid after script_hash_inx in table "c_job_table"\n'
CONNECTED = "_check_mysql_concat_is_sane: MySQL server version is: 11.8.9-MariaDB-2 from Debian\n"
SLOW = "error: Database settings not recommended values: innodb_buffer_pool_size\n"


def accounting(**spec: object) -> Accounting:
    storage = {"host": "db", "username": "slurm", "passwordKeyRef": {"name": "database", "key": "password"}}
    tree = {
        "apiVersion": "slinky.slurm.net/v1beta1",
        "kind": "Accounting",
        "metadata": {"name": "a", "namespace": "ns"},
        "spec": {"storageConfig": storage, **spec},
    }
    found = decoded(tree)
    assert isinstance(found, Accounting)
    return found


def pod(*, ready: bool, ended: str = "") -> Pod:
    container: Tree = {"name": "slurmdbd", "ready": ready, "state": {"running": {}}}
    if ended:
        container["lastState"] = {"terminated": {"exitCode": 1, "message": ended}}
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    tree = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a-accounting-0", "namespace": "ns"},
        "status": {"conditions": conditions, "containerStatuses": [container]},
    }
    found = decoded(tree)
    assert isinstance(found, Pod)
    return found


def reasons(facts: Facts) -> dict[str, str]:
    return {each["type"]: each["reason"] for each in status(accounting(), facts)["conditions"]}


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (ABSENT, "DatabaseNotReachable"),
        (UNKNOWN_HOST, "DatabaseNotReachable"),
        (DENIED, "DatabaseAccessDenied"),
        (ABSENT + DENIED, "DatabaseAccessDenied"),
        (DENIED + STARTED, "Healthy"),
        (DENIED + STARTED + ABSENT, "DatabaseNotReachable"),
        ("", "Healthy"),
    ],
)
def test_the_log_tells_what_is_degraded(log: str, reason: str) -> None:
    assert reasons(Facts(pod=pod(ready=True), recent_log=log, now=NOW))["Degraded"] == reason


def test_the_last_words_of_an_ended_slurmdbd_count() -> None:
    assert reasons(Facts(pod=pod(ready=False, ended=DENIED), now=NOW))["Degraded"] == "DatabaseAccessDenied"


@pytest.mark.parametrize(
    "said",
    [
        CONVERTING,
        'adding key archive_delete (deleted) to table "c_job_table"\n',
        'dropping column nodes from table "c_event_table"\n',
        "as_mysql_convert_tables_post_create: post-converting tables\n",
    ],
)
def test_a_conversion_is_said(said: str) -> None:
    assert reasons(Facts(pod=pod(ready=False), startup_log=said, now=NOW))["Progressing"] == "ConvertingDatabase"


@pytest.mark.parametrize("complaint", [ABSENT, DENIED])
def test_a_conversion_goes_on_after_a_complaint_only_when_slurmdbd_says_so(complaint: str) -> None:
    assert is_converting(complaint + CONVERTING)
    assert not is_converting(CONVERTING + complaint)
    assert is_busy(complaint + CONNECTED)
    assert not is_busy(CONNECTED + CONVERTING + complaint)


def test_the_last_complaint_of_a_slurmdbd_that_fell_silent_at_its_start_stays_said() -> None:
    silent = Facts(pod=pod(ready=False), startup_log=CONNECTED + CONVERTING + DENIED, now=NOW)
    assert reasons(silent)["Degraded"] == "DatabaseAccessDenied"
    over = Facts(pod=pod(ready=False), startup_log=ABSENT + CONNECTED, now=NOW)
    assert reasons(over)["Degraded"] == "Healthy"


def test_a_new_database_is_no_conversion() -> None:
    assert not is_converting(CONNECTED)


def test_a_small_buffer_pool_is_advice_and_no_trouble() -> None:
    facts = Facts(pod=pod(ready=True), wrong_settings=wrong_settings(SLOW + STARTED), now=NOW)
    assert reasons(facts)["Degraded"] == "Healthy"
    ready = status(accounting(), facts)["conditions"][0]
    assert "innodb_buffer_pool_size" in ready["message"]


def test_missing_settings_are_all_named_at_once() -> None:
    log = (
        "error: innodb_snapshot_isolation is enabled, which is not supported by Slurm\n"
        "error: Database settings not recommended values: innodb_buffer_pool_size innodb_lock_wait_timeout\n"
    )
    facts = Facts(pod=pod(ready=True), wrong_settings=wrong_settings(log), now=NOW)
    degraded = status(accounting(), facts)["conditions"][2]
    assert degraded["reason"] == "DatabaseMisconfigured"
    assert "innodb_snapshot_isolation=OFF, innodb_lock_wait_timeout=900" in degraded["message"]
