"""Runs buildah on an image store of our own: nothing of the user's is read or changed."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from kubeslurm.local.host import cache
from kubeslurm.local.host.tasks import Tasks

LIBRARY = "/var/lib/containers"


def call(tasks: Tasks, *words: str | Path, on_line: Callable[[str], None] = lambda _: None) -> list[str]:
    """`buildah WORDS`."""
    return script(tasks, 'exec buildah "$@"', *words, on_line=on_line)


def script(tasks: Tasks, text: str, *words: str | Path, on_line: Callable[[str], None] = lambda _: None) -> list[str]:
    """A shell script that calls buildah, in a mount namespace of its own: whatever it mounts ends with it."""
    # buildah keeps notes about pushed layers in a fixed place; in this namespace that place is ours.
    ours = f"mkdir -p {LIBRARY}; mount --bind '{cache.folder('containers')}' {LIBRARY}\n"
    wrapped = ["unshare", "--mount", "--propagation", "private", "sh", "-euc", ours + text, "sh", *words]
    # Book-keeping of mounts lives and dies with the namespace that they are in.
    tmp = tempfile.TemporaryDirectory(dir=cache.folder("tmp"), prefix="buildah-", ignore_cleanup_errors=True)
    with tmp as folder:
        return tasks.run(wrapped, env=_settings(Path(folder)), on_line=on_line)


def _settings(here: Path) -> dict[str, str]:
    store = f'driver = "overlay"\ngraphroot = "{cache.directory() / "storage"}"\nrunroot = "{here / "run"}"\n'
    (here / "storage.conf").write_text(f"[storage]\n{store}")
    # Images come from our own builds only, and a short name means one of them, nothing else.
    (here / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
    (here / "registries.conf").write_text("unqualified-search-registries = []\n")
    return {
        "BUILDAH_ISOLATION": "chroot",
        "CONTAINERS_STORAGE_CONF": str(here / "storage.conf"),
        "CONTAINERS_REGISTRIES_CONF": str(here / "registries.conf"),
        "STORAGE_DRIVER": "overlay",
        "TMPDIR": str(here),
        "POLICY": str(here / "policy.json"),
    }
