"""Caches images in the form in which a registry stores them, so that a new cluster's registry needs no push.

Blobs are hard links: registries and the cache share the files.
"""

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from kubeslurm.local.host import cache, files
from kubeslurm.local.images.store import ImageRef

DIRECTORY = "registry"  # below the cache directory


class _Blob(msgspec.Struct, frozen=True):
    digest: str
    size: int


class _Manifest(msgspec.Struct, frozen=True):
    config: _Blob
    layers: list[_Blob]


def restore(image: ImageRef, registry: Path) -> bool:
    """Put an image into the storage directory of a registry; returns False if the cache lacks any of its blobs."""
    try:
        manifest = (_folder("images") / image.id).read_text()
        blobs = _blobs(manifest)
        if any(_cached(blob.digest).stat().st_size != blob.size for blob in blobs):
            return False
        for digest in (manifest, *(blob.digest for blob in blobs)):
            _link(_cached(digest), _stored(registry, digest))
    except (OSError, msgspec.MsgspecError):
        return False
    repository = registry / "docker/registry/v2/repositories" / image.name
    for blob in blobs:
        _write_link(repository / "_layers", blob.digest)
    _write_link(repository / "_manifests/revisions", manifest)
    _write_link(repository / "_manifests/tags" / image.tag / "index", manifest)
    _write(repository / "_manifests/tags" / image.tag / "current/link", manifest)
    return True


def save(image: ImageRef, manifest: str, registry: Path) -> None:
    """Cache an image that a registry stores under this manifest digest; without disk space, it is not cached."""
    with suppress(OSError, msgspec.MsgspecError):
        _link(_stored(registry, manifest), _cached(manifest))
        for blob in _blobs(manifest):
            _cached(blob.digest).unlink(missing_ok=True)  # it may be damaged
            _link(_stored(registry, blob.digest), _cached(blob.digest))
        _write(_folder("images") / image.id, manifest)


def prune(images: Iterable[ImageRef]) -> None:
    """Delete everything that none of these images needs."""
    ids = {image.id for image in images}
    needed: set[Path] = set()
    for entry in _folder("images").iterdir():
        if entry.name not in ids:
            entry.unlink(missing_ok=True)
            continue
        with suppress(OSError, msgspec.MsgspecError):
            manifest = entry.read_text()
            needed |= {_cached(manifest), *(_cached(blob.digest) for blob in _blobs(manifest))}
    for file in _folder("blobs").iterdir():
        if file not in needed:
            file.unlink(missing_ok=True)


def _blobs(manifest: str) -> list[_Blob]:
    """The config and the layers of a cached image."""
    found = msgspec.json.decode(_cached(manifest).read_bytes(), type=_Manifest)
    return [found.config, *found.layers]


def _folder(name: str) -> Path:
    return cache.folder(f"{DIRECTORY}/{name}")


def _cached(digest: str) -> Path:
    return _folder("blobs") / digest.replace(":", "-")


def _stored(registry: Path, digest: str) -> Path:
    algorithm, _, name = digest.partition(":")
    return registry / "docker/registry/v2/blobs" / algorithm / name[:2] / name / "data"


def _write_link(folder: Path, digest: str) -> None:
    """Write a link file, with which a registry refers to a blob."""
    _write(folder / digest.replace(":", "/") / "link", digest)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write(path, text, mode=0o644)


def _link(source: Path, target: Path) -> None:
    """Make a hard link, or a copy if that is not possible; blobs never change."""
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.{os.getpid()}")
    partial.unlink(missing_ok=True)
    try:
        partial.hardlink_to(source)
    except OSError:
        _copy(source, partial)
    partial.rename(target)


def _copy(source: Path, target: Path) -> None:
    """Copy a file; an incomplete copy is deleted, because the disk may be full."""
    try:
        shutil.copyfile(source, target)
    except OSError:
        target.unlink(missing_ok=True)
        raise
