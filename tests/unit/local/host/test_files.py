import stat
from pathlib import Path

import msgspec
import pytest

from kubeslurm.local.host import files


class Record(msgspec.Struct, frozen=True):
    name: str
    path: Path


def test_a_struct_can_be_saved_and_loaded(tmp_path: Path) -> None:
    record = Record("a", Path("/b"))
    files.save(tmp_path / "record.json", record)
    assert files.load(tmp_path / "record.json", Record) == record


@pytest.mark.parametrize("text", ["", '{"name": "a"', '{"name": 1}'])
def test_a_file_that_does_not_fit_the_type_counts_as_missing(tmp_path: Path, text: str) -> None:
    (tmp_path / "record.json").write_text(text)
    assert files.load(tmp_path / "record.json", Record) is None
    assert files.load(tmp_path / "none.json", Record) is None


def test_a_written_file_replaces_the_old_one_with_its_own_mode(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    files.write(tmp_path / "file", "new", mode=0o640)
    assert (tmp_path / "file").read_text() == "new"
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_failed_write_leaves_no_temporary_file(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    with pytest.raises(OSError, match="directory"):
        files.write(tmp_path / "file", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
