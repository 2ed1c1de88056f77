"""An Accounting from its first pass to its end."""

import base64
from collections.abc import AsyncIterator

import pytest

from kubeslurm.api import names
from tests.support.user_services import UserServices

pytestmark = pytest.mark.looptime

DENIED = "error: mysql_real_connect failed: 1045 Access denied for user 'slurm'@'10.1.2.3' (using password: YES)\n"
ABSENT = "error: mysql_real_connect failed: 2002 Can't connect to server on 'db' (115)\n"
CONVERTING = 'adding column sluid after script_hash_inx in table "c_job_table"\n'
CONNECTED = "_check_mysql_concat_is_sane: MySQL server version is: 11.8.9-MariaDB-2 from Debian\n"
STARTED = "slurmdbd version 26.05.5 started\n"
SNAPSHOTS = "error: innodb_snapshot_isolation is enabled, which is not supported by Slurm\n"


@pytest.fixture
async def world() -> AsyncIterator[UserServices]:
    made = UserServices()
    await made.start()
    await made.make_keys()
    await password(made, "right")
    await made.make_accounting()
    yield made
    await made.stop()


async def password(world: UserServices, text: str | bytes) -> None:
    raw = text.encode() if isinstance(text, str) else text
    data = {"password": base64.b64encode(raw).decode()}
    await world.plain("Secret", "database", "secrets", data=data)


def conf(world: UserServices) -> str:
    found = world.find("secrets", "a-accounting")
    return base64.b64decode(found["data"]["slurmdbd.conf"]).decode() if found else ""


async def test_slurmdbd_gets_its_configuration_its_address_and_its_pod(world: UserServices) -> None:
    await world.pass_accounting()
    assert "StoragePass=right\n" in conf(world)
    assert world.find("services", "a-accounting") is not None
    assert world.find("statefulsets", "a-accounting") is not None
    assert world.condition("Ready", "accountings", "a")["reason"] == "Starting"


async def test_a_password_is_written_so_that_slurm_reads_all_of_it(world: UserServices) -> None:
    await password(world, "a#b\\c\n")
    await world.pass_accounting()
    assert "StoragePass=a\\#b\\\\c\n" in conf(world)


@pytest.mark.parametrize("raw", [b"\xff\xfe", b'"quoted"', b"two\nlines", b'blank and "'])
async def test_a_password_that_the_file_cannot_carry_is_told_and_the_old_one_stays(
    world: UserServices, raw: bytes
) -> None:
    await world.pass_accounting()
    before = conf(world)
    await password(world, raw)
    await world.pass_accounting()
    assert conf(world) == before
    degraded = world.condition("Degraded", "accountings", "a")
    assert degraded["reason"] == "InvalidSpec"
    assert "spec.storageConfig.passwordKeyRef" in degraded["message"]


async def test_a_changed_password_is_followed_by_a_new_pod(world: UserServices) -> None:
    await world.pass_accounting()
    before = world.annotations("statefulsets", "a-accounting")[names.SLURMDBD_CONF_HASH]
    await password(world, "new")
    await world.pass_accounting()
    assert "StoragePass=new\n" in conf(world)
    assert world.annotations("statefulsets", "a-accounting")[names.SLURMDBD_CONF_HASH] != before
    assert "slurmdbd.conf changed" in (await world.sent_events())["Restarting"]


async def test_the_pod_of_another_operator_is_taken_over_and_goes_with_the_first_change(
    world: UserServices,
) -> None:
    template = {"metadata": {"annotations": {names.SLURMDBD_CONF_HASH: "theirs"}}, "spec": {"containers": []}}
    metadata = {"name": "a-accounting", "namespace": "ns"}
    tree = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": {"template": template}}
    await world.server.put(tree, "statefulsets")
    await world.settle()
    await world.pass_accounting()
    await world.pass_accounting()
    assert set(await world.sent_events()) == {"Adopted"}
    await world.make_accounting(slurmdbd={"image": "slurmdbd:2"})
    await world.pass_accounting()
    assert "another operator made them" in (await world.sent_events())["Restarting"]


async def test_a_conversion_is_said_and_not_cut_short_by_a_change(world: UserServices) -> None:
    await world.pass_accounting()
    before = world.annotations("statefulsets", "a-accounting")
    world.talking.said["a-accounting-0"] = CONVERTING
    await world.run_pod("a-accounting-0", names.SLURMDBD, "a", ready=False)
    await password(world, "new")
    await world.pass_accounting()
    assert world.annotations("statefulsets", "a-accounting") == before
    assert world.condition("Progressing", "accountings", "a")["reason"] == "ConvertingDatabase"
    said = await world.sent_events()
    assert "wait for the end" in said["UpdatePostponed"]
    assert "Restarting" not in said
    world.talking.said["a-accounting-0"] = CONVERTING + STARTED
    await world.pass_accounting()
    assert world.annotations("statefulsets", "a-accounting") != before


async def test_a_conversion_that_begins_after_hours_of_complaints_is_not_cut_short(world: UserServices) -> None:
    await world.pass_accounting()
    before = world.annotations("statefulsets", "a-accounting")
    absent = "error: mysql_real_connect failed: 2003 Can't connect to MySQL server on 'db'\n"
    world.talking.said["a-accounting-0"] = absent * 2000 + CONNECTED + CONVERTING
    await world.run_pod("a-accounting-0", names.SLURMDBD, "a", ready=False)
    await password(world, "new")
    await world.pass_accounting()
    assert world.annotations("statefulsets", "a-accounting") == before
    assert world.condition("Progressing", "accountings", "a")["reason"] == "ConvertingDatabase"


async def test_a_change_waits_while_nobody_can_tell_whether_slurmdbd_converts(world: UserServices) -> None:
    await world.pass_accounting()
    before = world.annotations("statefulsets", "a-accounting")
    world.talking.said["a-accounting-0"] = CONVERTING
    world.talking.logs_status = 500
    await world.run_pod("a-accounting-0", names.SLURMDBD, "a", ready=False)
    await password(world, "new")
    await world.pass_accounting()
    assert world.annotations("statefulsets", "a-accounting") == before
    assert "cannot be read" in (await world.sent_events())["UpdatePostponed"]
    assert "cannot be read" in world.condition("Progressing", "accountings", "a")["message"]
    world.talking.said["a-accounting-0"], world.talking.logs_status = "", 200
    await world.pass_accounting()
    assert world.annotations("statefulsets", "a-accounting") != before


async def test_a_slurmdbd_that_is_connected_and_not_yet_started_is_not_ended_for_a_change(
    world: UserServices,
) -> None:
    await world.pass_accounting()
    before = world.annotations("statefulsets", "a-accounting")
    world.talking.said["a-accounting-0"] = CONNECTED
    await world.run_pod("a-accounting-0", names.SLURMDBD, "a", ready=False)
    await password(world, "new")
    await world.pass_accounting()
    assert world.annotations("statefulsets", "a-accounting") == before
    assert not await world.sent_events()
    assert "changes wait" in world.condition("Progressing", "accountings", "a")["message"]
    world.talking.said["a-accounting-0"] = CONNECTED + STARTED
    await world.pass_accounting()
    assert world.annotations("statefulsets", "a-accounting") != before


async def test_a_slurmdbd_that_has_listened_is_not_converting_any_more_also_for_a_new_operator(
    world: UserServices,
) -> None:
    await world.pass_accounting()
    before = world.annotations("statefulsets", "a-accounting")
    world.talking.said["a-accounting-0"] = CONVERTING  # the part of a long log that is read ends before the start
    await world.run_pod("a-accounting-0", names.SLURMDBD, "a", ready=False)
    await password(world, "new")
    await world.pass_accounting()
    assert world.annotations("statefulsets", "a-accounting") == before
    await world.run_pod("a-accounting-0", names.SLURMDBD, "a", ready=False, started=True)
    await world.pass_accounting()
    assert world.annotations("statefulsets", "a-accounting") != before


async def test_a_slurmdbd_that_is_turned_away_after_its_conversion_gets_the_new_password(
    world: UserServices,
) -> None:
    await world.pass_accounting()
    before = world.annotations("statefulsets", "a-accounting")
    world.talking.said["a-accounting-0"] = CONNECTED + CONVERTING + DENIED  # and nothing more, for ever
    await world.run_pod("a-accounting-0", names.SLURMDBD, "a", ready=False)
    await password(world, "new")
    await world.pass_accounting()
    assert world.annotations("statefulsets", "a-accounting") != before
    assert world.condition("Degraded", "accountings", "a")["reason"] == "DatabaseAccessDenied"


async def test_a_pod_of_another_operator_may_convert_although_the_kubelet_calls_it_started(
    world: UserServices,
) -> None:
    await world.pass_accounting()
    before = world.annotations("statefulsets", "a-accounting")
    world.talking.said["a-accounting-0"] = CONVERTING
    await world.run_pod("a-accounting-0", names.SLURMDBD, "a", ready=False, started=True, annotations={})
    await password(world, "new")
    await world.pass_accounting()
    assert world.annotations("statefulsets", "a-accounting") == before


async def test_a_quiet_accounting_is_not_written_at_all(world: UserServices) -> None:
    await world.pass_accounting()
    await world.run_pod("a-accounting-0", names.SLURMDBD, "a", ready=True)
    await world.pass_accounting()
    before = world.writes
    for _ in range(3):
        await world.pass_accounting()
    assert world.writes == before
    assert not await world.sent_events()


async def test_a_missing_password_is_said_and_starts_nothing(world: UserServices) -> None:
    await world.server.remove("database", plural="secrets")
    await world.settle()
    await world.pass_accounting()
    ready = world.condition("Ready", "accountings", "a")
    assert ready["reason"] == "SecretKeyNotFound"
    assert "ns/database" in ready["message"]
    assert world.find("statefulsets", "a-accounting") is None


async def test_a_refused_password_names_the_secret_to_correct(world: UserServices) -> None:
    await world.pass_accounting()
    world.talking.said["a-accounting-0"] = DENIED * 3
    await world.run_pod("a-accounting-0", names.SLURMDBD, "a", ready=False)
    await world.pass_accounting()
    wrong = world.condition("Degraded", "accountings", "a")
    assert wrong["reason"] == "DatabaseAccessDenied"
    assert "ns/database" in wrong["message"]


async def test_what_slurmdbd_said_before_it_started_is_over(world: UserServices) -> None:
    world.talking.said["a-accounting-0"] = ABSENT * 3 + STARTED
    await world.run_pod("a-accounting-0", names.SLURMDBD, "a", ready=True)
    await world.pass_accounting()
    assert world.condition("Degraded", "accountings", "a")["status"] == "False"
    assert world.status("accountings", "a")["slurmVersion"] == "26.05.5"


async def test_a_complaint_about_settings_stays_until_slurmdbd_starts_anew(world: UserServices) -> None:
    world.talking.said["a-accounting-0"] = SNAPSHOTS + STARTED
    await world.run_pod("a-accounting-0", names.SLURMDBD, "a", ready=True)
    await world.pass_accounting()
    world.talking.said["a-accounting-0"] = ""
    await world.pass_accounting()
    wrong = world.condition("Degraded", "accountings", "a")
    assert wrong["reason"] == "DatabaseMisconfigured"
    assert "innodb_snapshot_isolation=OFF" in wrong["message"]
    assert world.condition("Ready", "accountings", "a")["status"] == "True"


async def test_settings_are_looked_at_again_when_the_log_could_not_be_read(world: UserServices) -> None:
    world.talking.said["a-accounting-0"] = SNAPSHOTS + STARTED
    world.talking.logs_status = 500
    await world.run_pod("a-accounting-0", names.SLURMDBD, "a", ready=True)
    await world.pass_accounting()
    world.talking.logs_status = 200
    await world.pass_accounting()
    assert world.condition("Degraded", "accountings", "a")["reason"] == "DatabaseMisconfigured"


async def test_an_external_slurmdbd_needs_nothing_here(world: UserServices) -> None:
    await world.make_accounting(external=True, externalConfig={"host": "dbd.example.org", "port": 7000})
    await world.pass_accounting()
    assert world.find("statefulsets", "a-accounting") is None
    ready = world.condition("Ready", "accountings", "a")
    assert ready["status"] == "True"
    assert "dbd.example.org:7000" in ready["message"]


async def test_deletion_waits_for_the_workers_whose_jobs_are_still_to_be_recorded(world: UserServices) -> None:
    await world.pass_accounting()
    await world.make_controller(accountingRef={"name": "a"})
    await world.make("NodeSet", "w", "nodesets", spec={"controllerRef": {"name": "c"}})
    found = world.find("accountings", "a") or {}
    found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    await world.server.put(found, "accountings")
    await world.settle()
    await world.pass_accounting()
    assert world.condition("Ready", "accountings", "a")["reason"] == "DeletionBlocked"
    await world.server.remove("w", plural="nodesets")
    await world.settle()
    await world.pass_accounting()
    assert names.FINALIZER not in (world.find("accountings", "a") or {}).get("metadata", {}).get("finalizers", [])
