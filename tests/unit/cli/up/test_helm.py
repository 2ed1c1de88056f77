import json
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kubeslurm.cli.up import helm
from kubeslurm.cli.up.access import Access
from kubeslurm.cli.up.helm import Release
from kubeslurm.local.errors import LocalError

IN_PROGRESS = "another operation (install/upgrade/rollback) is in progress"


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
    script = f'[ "$1" = get ] && cat {tmp_path}/records || echo "$@" >> {tmp_path}/calls'
    return Access((str(program(tmp_path / "kubectl", script)),), ())


@pytest.fixture
def blocked_helm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A helm that fails until the record of another helm is deleted."""
    script = f"[ -e {tmp_path}/calls ] || {{ echo 'Error: UPGRADE FAILED: {IN_PROGRESS}' >&2; exit 1; }}"
    monkeypatch.setattr(helm, "_program", lambda: str(program(tmp_path / "helm", script)))


def write_record(tmp_path: Path, created: datetime) -> None:
    metadata = {"creationTimestamp": created.strftime("%Y-%m-%dT%H:%M:%SZ")}
    (tmp_path / "records").write_text(json.dumps({"items": [{"metadata": metadata}]}))


@pytest.mark.usefixtures("blocked_helm")
def test_a_recent_record_of_another_helm_is_kept(tmp_path: Path, release: Release, access: Access) -> None:
    write_record(tmp_path, datetime.now(UTC) - timedelta(minutes=1))
    with pytest.raises(LocalError, match="Another helm command is working on release slurm"):
        helm.install(access, release)
    assert not (tmp_path / "calls").exists()


@pytest.mark.usefixtures("blocked_helm")
def test_an_old_record_of_a_killed_helm_is_deleted_and_the_install_continues(
    tmp_path: Path, release: Release, access: Access
) -> None:
    write_record(tmp_path, datetime.now(UTC) - timedelta(minutes=6))
    helm.install(access, release)
    calls = (tmp_path / "calls").read_text()
    assert calls.startswith(
        "delete secrets --namespace=slurm --selector=owner=helm,name=slurm,kubeslurm.dev/made-from,"
    )
    assert "deployed" not in calls


def test_any_other_failure_is_reported_and_deletes_nothing(
    tmp_path: Path, release: Release, access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(helm, "_program", lambda: str(program(tmp_path / "helm", "echo 'no such chart' >&2; exit 1")))
    with pytest.raises(LocalError, match="no such chart"):
        helm.install(access, release)
    assert not (tmp_path / "calls").exists()
