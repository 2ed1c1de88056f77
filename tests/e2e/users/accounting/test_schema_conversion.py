"""A database of an older release is brought up to date by slurmdbd, in peace: said, and not cut short by anything."""

from collections.abc import Iterator

import pytest

from kubeslurm.api.meta import Tree
from tests.support.site import ACCOUNTING, SLOWLY, Records
from tests.support.waiting import wait_for

USUAL, OLDER = "slurm_acct_db", "older_acct_db"
JOBS = f"{OLDER}.slurm_slurm_job_table"
COPY = """
SELECT CONCAT('CREATE TABLE older_acct_db.', table_name, ' LIKE slurm_acct_db.', table_name, ';'
 ' INSERT INTO older_acct_db.', table_name, ' SELECT * FROM slurm_acct_db.', table_name, ';')
FROM information_schema.tables WHERE table_schema = 'slurm_acct_db'
"""
KNOWN = "SELECT COUNT(*) FROM mysql.global_priv WHERE User='slurm' AND Priv LIKE CONCAT('%', PASSWORD('another'), '%')"
OPERATOR = "app.kubernetes.io/name=slurm-operator"


def use(plain: Records, database: str, extra: str = "") -> None:
    plain.patch(ACCOUNTING, plain.name, {"spec": {"storageConfig": {"database": database}, "extraConf": extra}})


def change_password(plain: Records) -> None:
    """Writes another password into the Secret, and waits until the database has followed."""
    plain.patch("secret", "slurm-mariadb", {"stringData": {"password": "another"}})
    # The kubelet looks again at once, not in a minute.
    plain.kubectl("annotate", "--overwrite", "pod", "slurm-mariadb-0", "password=another")
    wait_for("the database to follow", lambda: plain.database(KNOWN).strip() == "1", within=SLOWLY, every=0.5)


def slurmdbd(plain: Records) -> Tree:
    return plain.get("pod", f"{plain.name}-accounting-0")


def revision(plain: Records) -> int:
    """Grows with every change of what the pod shall be."""
    generation: int = plain.get("statefulset", f"{plain.name}-accounting")["metadata"]["generation"]
    return generation


def converts(plain: Records) -> bool:
    """Whether the object says so, by the wish of now, and nothing else is wrong."""
    found = plain.get(ACCOUNTING, plain.name)
    said = {each["type"]: each for each in found["status"]["conditions"]}
    current = found["status"]["observedGeneration"] == found["metadata"]["generation"]
    return bool(
        current and said["Progressing"]["reason"] == "ConvertingDatabase" and said["Degraded"]["status"] == "False"
    )


def settled(plain: Records) -> bool:
    """Whether slurmdbd runs as it is wanted now, and records."""
    if not plain.records_well():
        return False
    found = plain.get("statefulset", f"{plain.name}-accounting")
    status = found["status"]
    current = status["observedGeneration"] == found["metadata"]["generation"]
    return bool(current and status.get("updatedReplicas") == status.get("readyReplicas") == 1)


@pytest.fixture
def old_job(plain: Records) -> Iterator[int]:
    """A copy of the database, with one job in it, and without what this release has brought to the table of jobs."""
    wait_for("accounting to be well", lambda: settled(plain), within=SLOWLY)
    job = plain.submit("true")
    plain.wait_until_recorded(job)
    plain.database(f"CREATE OR REPLACE DATABASE {OLDER}; GRANT ALL ON {OLDER}.* TO 'slurm'@'%'")
    plain.database(plain.database(COPY))
    # What slurmdbd has noted about its tables goes as well, otherwise it believes the note.
    plain.database(f"ALTER TABLE {JOBS} DROP COLUMN sluid; TRUNCATE {OLDER}.table_defs_table")
    yield job
    use(plain, USUAL)
    wait_for("accounting to be well", lambda: settled(plain), within=SLOWLY)
    plain.database(f"DROP DATABASE {OLDER}")


def test_a_conversion_is_said_and_neither_a_change_nor_a_new_operator_cuts_it_short(
    plain: Records, old_job: int
) -> None:
    # Slurmdbd waits for this reader in the middle of the conversion, as long as it takes us to look.
    with plain.reading(JOBS):
        use(plain, OLDER)
        wait_for("the conversion to be said", lambda: converts(plain), within=SLOWLY)
        converting, before = slurmdbd(plain), revision(plain)
        plain.cluster.kubectl("delete", "pod", "--namespace=slinky", f"--selector={OPERATOR}")
        change_password(plain)
        use(plain, OLDER, "PurgeEventAfter=12month")
        wait_for("the new operator to say it too", lambda: converts(plain), within=SLOWLY)
        assert revision(plain) == before
        now = slurmdbd(plain)
        assert now["metadata"]["uid"] == converting["metadata"]["uid"]
        assert now["status"]["containerStatuses"][0]["restartCount"] == 0
        during = plain.submit("true")
        plain.wait_for_job(during, "COMPLETED")
    # From here on the database refuses the slurmdbd that has converted it: only the next one knows the password.
    wait_for("the changes to be followed", lambda: revision(plain) > before and settled(plain), within=SLOWLY)
    assert slurmdbd(plain)["metadata"]["uid"] != converting["metadata"]["uid"]
    for job in (old_job, during):
        plain.wait_until_recorded(job)
