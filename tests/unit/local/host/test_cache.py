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


class Messages(list[str]):
    """Collects the messages to the user."""

    def __call__(self, text: str) -> None:
        self.append(text)


def binary(folder: Path) -> None:
    (folder / "binary").write_bytes(b"x" * cache.CHECKED_SIZE)


def test_the_cache_is_in_the_users_cache_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache.directory() == tmp_path / "kubeslurm"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert cache.directory() == Path("/home/someone/.cache/kubeslurm")


def test_a_relative_cache_home_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/someone")
    assert cache.directory() == Path("/home/someone/.cache/kubeslurm")


def test_the_digest_depends_on_contents_and_names_of_files_but_not_on_their_directory(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "go.mod").write_text("module a")
    assert cache.digest(tmp_path / "one") == cache.digest(tmp_path / "two")
    (tmp_path / "two" / "go.mod").write_text("module b")
    assert cache.digest(tmp_path / "one") != cache.digest(tmp_path / "two")
    (tmp_path / "one" / "go.mod").rename(tmp_path / "one" / "go.sum")
    assert cache.digest(tmp_path / "one") != cache.digest(tmp_path / "two")


def test_the_digest_depends_on_where_one_text_ends() -> None:
    assert cache.digest("ab", "c") != cache.digest("a", "bc")


def test_a_complete_entry_is_not_made_again() -> None:
    entry, messages = Entry("thing", "1"), Messages()
    assert entry.fill(binary, notify=messages) == entry.path

    def never(_: Path) -> None:
        raise AssertionError("made twice")

    assert entry.fill(never, notify=messages) == entry.path
    assert messages == []


def test_a_failed_entry_is_deleted() -> None:
    entry = Entry("thing", "1")

    def fail(folder: Path) -> None:
        binary(folder)
        raise LocalError("No.")

    with pytest.raises(LocalError):
        entry.fill(fail, notify=Messages())
    assert not entry.complete()
    assert list(entry.path.parent.iterdir()) == []


def test_an_incomplete_entry_is_reported_and_made_again() -> None:
    entry, messages = Entry("thing", "1"), Messages()

    def interrupted(folder: Path) -> None:
        binary(folder)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        entry.fill(interrupted, notify=messages)
    assert not entry.complete()
    entry.fill(binary, notify=messages)
    assert entry.complete()
    assert len(messages) == 1
    assert "interrupted" in messages[0]


@pytest.mark.parametrize("damage", ["truncate", "remove", "marker"])
def test_a_damaged_entry_is_reported_and_made_again(damage: str) -> None:
    entry, messages = Entry("thing", "1"), Messages()
    entry.fill(binary, notify=messages)
    match damage:
        case "truncate":
            (entry.path / "binary").write_bytes(b"short")
        case "remove":
            (entry.path / "binary").unlink()
        case _:
            (entry.path / cache.MARKER).write_text("{")
    assert not entry.complete()
    entry.fill(binary, notify=messages)
    assert entry.complete()
    assert "damaged" in messages[0]


def test_a_full_disk_is_an_error_with_a_remedy() -> None:
    def full(_: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(LocalError, match=r"No space left on device.*XDG_CACHE_HOME"):
        Entry("thing", "1").fill(full, notify=Messages())


def test_a_second_process_waits_and_does_not_make_the_entry_again() -> None:
    entry, messages, made = Entry("thing", "1"), Messages(), []
    inside, resume = threading.Event(), threading.Event()

    def slow(folder: Path) -> None:
        made.append(1)
        inside.set()
        assert resume.wait(300)
        binary(folder)

    class ResumingMessages(Messages):
        def __call__(self, text: str) -> None:
            super().__call__(text)
            resume.set()

    first = threading.Thread(target=entry.fill, args=(slow,), kwargs={"notify": messages})
    first.start()
    assert inside.wait(300)
    waiting = ResumingMessages()
    entry.fill(slow, notify=waiting)
    first.join()
    assert made == [1]
    assert waiting == ["another kubeslurm is making thing; waiting for it"]


def test_the_two_newest_entries_of_a_name_are_kept() -> None:
    for age, key in enumerate(("1", "2", "3")):
        made = Entry("thing", key).fill(binary, notify=Messages())
        os.utime(made, (age, age))  # the time stamps of a file system are too coarse
    Entry("other", "1").fill(binary, notify=Messages())
    assert sorted(path.name for path in Entry("thing", "3").path.parent.iterdir()) == ["other-1", "thing-2", "thing-3"]
