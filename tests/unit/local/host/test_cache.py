"""The cache: keyed by inputs, whole or not there, filled by one process at a time."""

import os
import threading
from pathlib import Path

import pytest

from kubeslurm.local.errors import LocalError
from kubeslurm.local.host import cache
from kubeslurm.local.host.cache import Entry


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


class Said(list[str]):
    """Collects what the user was told."""

    def __call__(self, text: str) -> None:
        self.append(text)


def binary(folder: Path) -> None:
    (folder / "binary").write_bytes(b"x" * cache.WITNESS_SIZE)


def test_the_cache_is_below_the_users_cache_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache.directory() == tmp_path / "kubeslurm"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert cache.directory() == Path("/home/someone/.cache/kubeslurm")


def test_a_relative_cache_home_is_ignored_as_the_convention_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "somewhere")
    monkeypatch.setenv("HOME", "/home/someone")
    assert cache.directory() == Path("/home/someone/.cache/kubeslurm")


def test_the_key_follows_file_contents_and_names_but_not_the_place(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "go.mod").write_text("module a")
    assert cache.digest(tmp_path / "one") == cache.digest(tmp_path / "two")
    (tmp_path / "two" / "go.mod").write_text("module b")
    assert cache.digest(tmp_path / "one") != cache.digest(tmp_path / "two")
    (tmp_path / "one" / "go.mod").rename(tmp_path / "one" / "go.sum")
    assert cache.digest(tmp_path / "one") != cache.digest(tmp_path / "two")


def test_texts_that_run_together_give_different_keys() -> None:
    assert cache.digest("ab", "c") != cache.digest("a", "bc")


def test_a_second_fill_makes_nothing() -> None:
    entry, said = Entry("thing", "1"), Said()
    assert entry.fill(binary, say=said) == entry.path

    def never(_: Path) -> None:
        raise AssertionError("made twice")

    assert entry.fill(never, say=said) == entry.path
    assert said == []


def test_a_failed_make_leaves_nothing_behind() -> None:
    entry = Entry("thing", "1")

    def fail(folder: Path) -> None:
        binary(folder)
        raise LocalError("No.")

    with pytest.raises(LocalError):
        entry.fill(fail, say=Said())
    assert not entry.complete()
    assert list(entry.path.parent.iterdir()) == []


def test_a_half_filled_entry_is_noticed_said_and_made_again() -> None:
    entry, said = Entry("thing", "1"), Said()

    def interrupted(folder: Path) -> None:
        binary(folder)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        entry.fill(interrupted, say=said)
    assert not entry.complete()
    entry.fill(binary, say=said)
    assert entry.complete()
    assert len(said) == 1
    assert "interrupted" in said[0]


@pytest.mark.parametrize("damage", ["truncate", "remove", "marker"])
def test_a_damaged_entry_is_noticed_said_and_made_again(damage: str) -> None:
    entry, said = Entry("thing", "1"), Said()
    entry.fill(binary, say=said)
    match damage:
        case "truncate":
            (entry.path / "binary").write_bytes(b"short")
        case "remove":
            (entry.path / "binary").unlink()
        case _:
            (entry.path / cache.MARKER).write_text("{")
    assert not entry.complete()
    entry.fill(binary, say=said)
    assert entry.complete()
    assert "damaged" in said[0]


def test_a_full_disk_is_one_sentence_with_a_remedy() -> None:
    def full(_: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(LocalError, match=r"No space left on device.*XDG_CACHE_HOME"):
        Entry("thing", "1").fill(full, say=Said())


def test_two_at_once_make_it_once_and_the_second_says_that_it_waits() -> None:
    entry, said, made = Entry("thing", "1"), Said(), []
    inside, go_on = threading.Event(), threading.Event()

    def slow(folder: Path) -> None:
        made.append(1)
        inside.set()
        assert go_on.wait(300)
        binary(folder)

    class Waiting(Said):
        def __call__(self, text: str) -> None:
            super().__call__(text)
            go_on.set()

    first = threading.Thread(target=entry.fill, args=(slow,), kwargs={"say": said})
    first.start()
    assert inside.wait(300)
    waiting = Waiting()
    entry.fill(slow, say=waiting)
    first.join()
    assert made == [1]
    assert waiting == ["another kubeslurm is making thing; waiting for it"]


def test_the_two_newest_entries_of_a_name_are_kept() -> None:
    for age, key in enumerate(("1", "2", "3")):
        made = Entry("thing", key).fill(binary, say=Said())
        os.utime(made, (age, age))  # the clock of a file system does not tell moments apart that are this close
    Entry("other", "1").fill(binary, say=Said())
    assert sorted(path.name for path in Entry("thing", "3").path.parent.iterdir()) == ["other-1", "thing-2", "thing-3"]
