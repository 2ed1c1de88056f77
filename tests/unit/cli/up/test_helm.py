import stat
import time
from pathlib import Path

import pytest

from kubeslurm.cli.up import helm
from kubeslurm.cli.up.access import Access
from kubeslurm.cli.up.helm import Record, Release
from kubeslurm.local.errors import LocalError

# As kubectl prints them: namespace, name, version, status, created, modified, digest.
RECORDS = """slurm    slurm            1    superseded       1800000000   1800000005   abc
slurm    slurm            10   pending-upgrade  1800000100   <none>       def
slurm    slurm            9    deployed         <none>       1800000050   abc
theirs   cert-manager     1    deployed         <none>       1700000000   <none>
"""


def program(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def release(tmp_path: Path) -> Release:
    (tmp_path / "chart").mkdir()
    return Release("slurm", "slurm", tmp_path / "chart", {})


@pytest.fixture
def access(tmp_path: Path) -> Access:
    """A kubectl that prints the Helm records and logs every other call."""
    (tmp_path / "records").write_text(RECORDS)
    script = f'[ "$1" = get ] && cat {tmp_path}/records || echo "$@" >> {tmp_path}/calls'
    return Access((str(program(tmp_path / "kubectl", script)),), ())


def test_the_latest_revision_of_a_release_counts_even_if_an_earlier_one_is_deployed(access: Access) -> None:
    assert helm.records(access) == {
        ("slurm", "slurm"): Record("def", "pending-upgrade", 10, 1_800_000_100),
        ("theirs", "cert-manager"): Record("", "deployed", 1, 1_700_000_000),
    }


@pytest.mark.parametrize(
    ("status", "unfinished"),
    [
        ("pending-install", True),
        ("pending-upgrade", True),
        ("pending-rollback", True),
        ("uninstalling", True),
        ("deployed", False),
        ("failed", False),
        ("uninstalled", False),
    ],
)
def test_helm_refuses_to_work_on_a_release_that_another_helm_has_not_finished(status: str, unfinished: bool) -> None:
    assert Record("", status).unfinished is unfinished


def test_a_recent_record_of_another_helm_is_kept_on_a_cluster_that_others_use(
    tmp_path: Path, release: Release, access: Access
) -> None:
    recent = Record("abc", "pending-install", 1, int(time.time()) - 60)
    with pytest.raises(LocalError, match="Another helm command is working on release slurm"):
        helm.discard(access, release, recent, alone=False)
    assert not (tmp_path / "calls").exists()


@pytest.mark.parametrize(("age", "alone"), [(360, False), (0, True)])
def test_the_record_of_a_killed_helm_is_deleted_and_no_other(
    age: int, alone: bool, tmp_path: Path, release: Release, access: Access
) -> None:
    helm.discard(access, release, Record("abc", "pending-upgrade", 10, int(time.time()) - age), alone=alone)
    selector = "owner=helm,name=slurm,version=10,status=pending-upgrade"
    assert (tmp_path / "calls").read_text() == f"delete secrets --selector={selector} --namespace=slurm\n"


def test_an_install_is_repeated_until_the_webhook_answers(
    tmp_path: Path, release: Release, access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    unreachable = "Internal error occurred: failed calling webhook: connection refused"
    script = f"echo >> {tmp_path}/tries; [ $(wc -l < {tmp_path}/tries) = 3 ] || {{ echo {unreachable!r} >&2; exit 1; }}"
    monkeypatch.setattr(helm, "_program", lambda: str(program(tmp_path / "helm", script)))
    monkeypatch.setattr(helm, "PAUSE", 0.0)
    helm.install(access, release)
    assert (tmp_path / "tries").read_text() == "\n" * 3
    monkeypatch.setattr(helm, "ADMISSION_TIMEOUT", -1.0)
    with pytest.raises(LocalError, match="failed calling webhook"):
        helm.install(access, release)


def test_any_other_failure_is_reported_and_deletes_nothing(
    tmp_path: Path, release: Release, access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(helm, "_program", lambda: str(program(tmp_path / "helm", "echo 'no such chart' >&2; exit 1")))
    with pytest.raises(LocalError, match="no such chart"):
        helm.install(access, release)
    assert not (tmp_path / "calls").exists()
