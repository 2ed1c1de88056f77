"""What a helm that was killed leaves behind, and what becomes of one that is called off."""

import json
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kubeslurm.cli.up import helm
from kubeslurm.cli.up.helm import Access, Release
from kubeslurm.local.errors import LocalError

BUSY = "another operation (install/upgrade/rollback) is in progress"


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
    """A kubectl that shows one record and notes what it is asked to delete."""
    script = f'[ "$1" = get ] && cat {tmp_path}/records || echo "$@" >> {tmp_path}/asked'
    return Access((str(program(tmp_path / "kubectl", script)),), ())


@pytest.fixture
def busy_helm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A helm that is kept away by the record of another one."""
    script = f"[ -e {tmp_path}/asked ] || {{ echo 'Error: UPGRADE FAILED: {BUSY}' >&2; exit 1; }}"
    monkeypatch.setattr(helm, "_program", lambda: str(program(tmp_path / "helm", script)))


def record(tmp_path: Path, begun: datetime) -> None:
    metadata = {"creationTimestamp": begun.strftime("%Y-%m-%dT%H:%M:%SZ")}
    (tmp_path / "records").write_text(json.dumps({"items": [{"metadata": metadata}]}))


@pytest.mark.usefixtures("busy_helm")
def test_a_helm_that_may_still_be_at_work_is_left_alone(tmp_path: Path, release: Release, access: Access) -> None:
    record(tmp_path, datetime.now(UTC) - timedelta(minutes=1))
    with pytest.raises(LocalError, match="Another helm is at work on release slurm"):
        helm.install(access, release)
    assert not (tmp_path / "asked").exists()


@pytest.mark.usefixtures("busy_helm")
def test_the_record_of_a_killed_helm_is_cleared_and_the_install_goes_on(
    tmp_path: Path, release: Release, access: Access
) -> None:
    record(tmp_path, datetime.now(UTC) - timedelta(minutes=6))
    helm.install(access, release)
    asked = (tmp_path / "asked").read_text()
    assert asked.startswith(
        "delete secrets --namespace=slurm --selector=owner=helm,name=slurm,kubeslurm.dev/made-from,"
    )
    assert "deployed" not in asked


def test_any_other_failure_is_told_and_clears_nothing(
    tmp_path: Path, release: Release, access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(helm, "_program", lambda: str(program(tmp_path / "helm", "echo 'no such chart' >&2; exit 1")))
    with pytest.raises(LocalError, match="no such chart"):
        helm.install(access, release)
    assert not (tmp_path / "asked").exists()
