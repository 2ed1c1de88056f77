"""Runs buildah on an image store of our own: nothing of the user's is read or changed."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kubeslurm.local import cache
from kubeslurm.local.tasks import Tasks

POLICY = '{"default": [{"type": "insecureAcceptAnything"}]}'  # images come from our own builds only
LIBRARY = "/var/lib/containers"
REGISTRIES = "unqualified-search-registries = []\n"  # a short name means an image of our own store, nothing else


@contextmanager
def _session() -> Iterator[dict[str, str]]:
    """Environment for one call. Mounts live and die with its namespace, so their book-keeping must too."""
    scratch = cache.directory() / "tmp"
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch, prefix="buildah-", ignore_cleanup_errors=True) as folder:
        here = Path(folder)
        store = cache.directory() / "storage"
        (here / "storage.conf").write_text(
            f'[storage]\ndriver = "overlay"\ngraphroot = "{store}"\nrunroot = "{here / "run"}"\n'
        )
        (here / "policy.json").write_text(POLICY)
        (here / "registries.conf").write_text(REGISTRIES)
        yield {
            "BUILDAH_ISOLATION": "chroot",
            "CONTAINERS_STORAGE_CONF": str(here / "storage.conf"),
            "CONTAINERS_REGISTRIES_CONF": str(here / "registries.conf"),
            "STORAGE_DRIVER": "overlay",
            "TMPDIR": folder,
            "POLICY": str(here / "policy.json"),
        }


def call(tasks: Tasks, *words: str | Path, on_line: Callable[[str], None] | None = None) -> list[str]:
    """`buildah WORDS`."""
    return script(tasks, 'exec buildah "$@"', *words, on_line=on_line)


def script(tasks: Tasks, text: str, *words: str | Path, on_line: Callable[[str], None] | None = None) -> list[str]:
    """A shell script that calls buildah, in a mount namespace of its own: whatever it mounts ends with it."""
    library = cache.directory() / "containers"
    library.mkdir(parents=True, exist_ok=True)
    # buildah keeps notes about pushed layers in a fixed place; in this namespace that place is ours.
    ours = f"mkdir -p {LIBRARY}; mount --bind '{library}' {LIBRARY}\n"
    wrapped = ["unshare", "--mount", "--propagation", "private", "sh", "-euc", ours + text, "sh", *words]
    with _session() as environment:
        return tasks.run(wrapped, env=environment, on_line=on_line)
