"""Runs buildah on its own image store: it neither reads nor changes the user's images and settings."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from kubeslurm.local.host import cache
from kubeslurm.local.host.tasks import Tasks

LIBRARY = "/var/lib/containers"


def run(tasks: Tasks, *args: str | Path, on_line: Callable[[str], None] = lambda _: None) -> list[str]:
    """Run `buildah ARGS` and return the lines of its output."""
    return run_script(tasks, 'exec buildah "$@"', *args, on_line=on_line)


def run_script(
    tasks: Tasks, script: str, *args: str | Path, on_line: Callable[[str], None] = lambda _: None
) -> list[str]:
    """Run a shell script that calls buildah, in its own mount namespace: its mounts end with it."""
    # buildah records pushed layers in a fixed directory; in this namespace a directory of our cache is mounted there.
    bind = f"mkdir -p {LIBRARY}; mount --bind '{cache.folder('containers')}' {LIBRARY}\n"
    argv = ["unshare", "--mount", "--propagation", "private", "sh", "-euc", bind + script, "sh", *args]
    # The run directory records mounts, so it must not outlive the mount namespace.
    tmp = tempfile.TemporaryDirectory(dir=cache.folder("tmp"), prefix="buildah-", ignore_cleanup_errors=True)
    with tmp as folder:
        return tasks.run(argv, env=_settings(Path(folder)), on_line=on_line)


def _settings(folder: Path) -> dict[str, str]:
    """Write the configuration of buildah to `folder`, and return the environment that points to it."""
    store = f'driver = "overlay"\ngraphroot = "{cache.directory() / "storage"}"\nrunroot = "{folder / "run"}"\n'
    (folder / "storage.conf").write_text(f"[storage]\n{store}")
    # All images are our own builds, and short names resolve to them only.
    (folder / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
    (folder / "registries.conf").write_text("unqualified-search-registries = []\n")
    return {
        "BUILDAH_ISOLATION": "chroot",
        "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
        "CONTAINERS_REGISTRIES_CONF": str(folder / "registries.conf"),
        "STORAGE_DRIVER": "overlay",
        "TMPDIR": str(folder),
        "POLICY": str(folder / "policy.json"),
    }
