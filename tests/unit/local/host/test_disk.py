import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from kubeslurm.local.errors import LocalError
from kubeslurm.local.host import disk

GIB = 2**30


def has_free(monkeypatch: pytest.MonkeyPatch, free: int, total: int = 10 * GIB) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free, total=total))


@pytest.mark.parametrize(
    ("free", "total", "full"),
    [(GIB, 10 * GIB, False), (100 * 2**20, 10 * GIB, True), (GIB, 500 * GIB, True), (6 * GIB, 500 * GIB, False)],
)
def test_a_disk_is_full_when_etcd_or_the_kubelets_have_too_little(
    free: int, total: int, full: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_free(monkeypatch, free, total)
    assert disk.is_full(tmp_path) is full


def test_an_error_on_a_full_disk_is_replaced_by_one_that_names_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_free(monkeypatch, 2 * 2**20)
    with pytest.raises(LocalError) as caught, disk.named_as_cause(tmp_path):
        raise LocalError("kubectl get failed: connection refused")
    assert str(caught.value) == (
        f"The disk is full: 2 MB are free below {tmp_path}. Free some space and run the same command again."
    )


def test_without_a_full_disk_an_error_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    has_free(monkeypatch, 5 * GIB)
    with pytest.raises(LocalError, match="no such chart"), disk.named_as_cause(tmp_path):
        raise LocalError("no such chart")


def test_the_space_for_a_directory_that_does_not_exist_is_that_of_its_file_system(tmp_path: Path) -> None:
    assert disk.free(tmp_path / "a" / "b") > 0
