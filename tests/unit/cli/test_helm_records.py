"""What a helm that was killed leaves behind, and what becomes of one that is called off."""

import stat
from pathlib import Path

import pytest

from kubeslurm.cli import helm
from kubeslurm.cli.helm import Access, Release
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
    kubectl = program(tmp_path / "kubectl", f'echo "$@" >> {tmp_path}/asked')
    return Access((str(kubectl),), ())


def test_the_record_of_a_killed_helm_is_cleared_and_the_install_goes_on(
    tmp_path: Path, release: Release, access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = f"[ -e {tmp_path}/asked ] || {{ echo 'Error: UPGRADE FAILED: {BUSY}' >&2; exit 1; }}"
    monkeypatch.setattr(helm, "_program", lambda: str(program(tmp_path / "helm", script)))
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
