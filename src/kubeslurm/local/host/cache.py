"""The user's cache directory. Each entry is keyed by a hash of its inputs, and is complete or absent."""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from kubeslurm.local.errors import LocalError

MARKER = ".complete.json"
CHECKED_SIZE = 16 * 1024  # only files from this size on are checked: a stat of every file would add 50 ms to each start


def directory() -> Path:
    """The cache directory. Everything in it can be built again."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "kubeslurm"


def folder(name: str) -> Path:
    """A subdirectory of the cache, created if it is missing."""
    path = directory() / name
    path.mkdir(parents=True, exist_ok=True)
    return path


def digest(*inputs: str | Path) -> str:
    """A short hash of texts and files; a directory counts with the names and contents of all its files."""
    total = hashlib.sha256()
    for item in inputs:
        for name, content in _contents(item):
            total.update(f"{len(name)}:{name}{len(content)}:".encode())
            total.update(content)
    return total.hexdigest()[:16]


def _contents(item: str | Path) -> Iterator[tuple[str, bytes]]:
    if isinstance(item, str):
        yield "", item.encode()
    elif item.is_dir():
        for path in sorted(item.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield str(path.relative_to(item)), path.read_bytes()
    else:
        yield item.name, item.read_bytes()


class Entry(msgspec.Struct, frozen=True):
    """One directory of the cache. It appears by a rename once it is complete, and never changes afterwards."""

    name: str
    key: str

    @property
    def path(self) -> Path:
        return directory() / "artifacts" / f"{self.name}-{self.key}"

    def complete(self) -> bool:
        """Whether the entry exists, with every large file that it had when it was made."""
        try:
            sizes = msgspec.json.decode((self.path / MARKER).read_bytes(), type=dict[str, int])
            return all((self.path / name).lstat().st_size == size for name, size in sizes.items())
        except (OSError, msgspec.MsgspecError):
            return False

    def fill(self, make: Callable[[Path], None], *, notify: Callable[[str], None]) -> Path:
        """Make the entry with `make(directory)` unless it is complete; a second process waits for the first."""
        if self.complete():
            return self.path
        with lock(self.name, on_wait=lambda: notify(f"another kubeslurm is making {self.name}; waiting for it")):
            if not self.complete():
                self._make(make, notify)
                self._remove_older()
        return self.path

    def _make(self, make: Callable[[Path], None], notify: Callable[[str], None]) -> None:
        partial = self.path.with_name(self.path.name + ".partial")
        if partial.exists():
            notify(f"{self.name}: an earlier run was interrupted; its incomplete cache entry is made again")
        if self.path.exists():
            notify(f"{self.name}: the cache entry {self.path} is damaged; it is made again")
        for leftover in (partial, self.path):
            shutil.rmtree(leftover, ignore_errors=True)
        try:
            partial.mkdir(parents=True)
            make(partial)
            (partial / MARKER).write_bytes(msgspec.json.encode(_large_files(partial)))
            partial.rename(self.path)
        except OSError as error:
            raise LocalError(
                f"{self.name} cannot be written to the cache: {error}.",
                f"Free some space below {directory()}, or set XDG_CACHE_HOME to a directory on a larger disk.",
            ) from error
        except LocalError:
            shutil.rmtree(partial, ignore_errors=True)
            raise

    def _remove_older(self) -> None:
        """Keep the two newest entries of a name, so that switching between two branches builds nothing."""
        siblings = [p for p in self.path.parent.glob(f"{self.name}-*") if p != self.path and not p.suffix]
        for path in sorted(siblings, key=lambda p: p.stat().st_mtime, reverse=True)[1:]:
            if not _mounted(path):
                shutil.rmtree(path, ignore_errors=True)


def _large_files(tree: Path) -> dict[str, int]:
    """Sizes of the files that `complete` checks."""
    files = [path for path in tree.rglob("*") if path.is_file() and not path.is_symlink()]
    sizes = {str(path.relative_to(tree)): path.stat().st_size for path in files}
    return {name: size for name, size in sizes.items() if size >= CHECKED_SIZE}


def _mounted(path: Path) -> bool:
    """Whether a running cluster uses the entry, in any mount namespace."""
    for table in Path("/proc").glob("[0-9]*/mountinfo"):
        try:
            if str(path) in table.read_text():
                return True
        except OSError:
            continue  # that process just ended
    return False


@contextmanager
def lock(name: str, *, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of that name, which all processes share; `on_wait` is called once if another process holds it."""
    with (folder("locks") / name).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
