"""Names a full disk as the cause of an error: programs report it in many ways, or not at all."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kubeslurm.local.errors import LocalError

REQUIRED_SPACE = 128 * 2**20  # etcd allocates 64 MB at its start
REQUIRED_PERCENT = 1  # with less, the kubelets evict pods


def free(path: Path) -> int:
    """Free bytes on the file system that a directory is, or will be, on."""
    return _usage(path).free


def is_full(path: Path) -> bool:
    """Whether there is too little space on this file system for a cluster to run."""
    usage = _usage(path)
    return usage.free < max(REQUIRED_SPACE, usage.total * REQUIRED_PERCENT // 100)


@contextmanager
def named_as_cause(*paths: Path) -> Iterator[None]:
    """Replace an error of the block by one about the disk, if one of these directories is on a full one."""
    try:
        yield
    except LocalError as error:
        for path in filter(is_full, paths):
            message = f"The disk is full: {free(path) / 2**20:.0f} MB are free below {path}."
            raise LocalError(message, "Free some space and run the same command again.") from error
        raise


def _usage(path: Path) -> "shutil._ntuple_diskusage":
    return shutil.disk_usage(next(each for each in (path, *path.parents) if each.exists()))
