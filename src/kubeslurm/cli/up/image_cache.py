"""Images as a registry stores them, kept for the next cluster: what was pushed once is linked, not packed again."""

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from kubeslurm.local.cluster.state import replace
from kubeslurm.local.host import cache
from kubeslurm.local.images.build import ImageRef


class _Blob(msgspec.Struct, frozen=True):
    digest: str
    size: int


class _Manifest(msgspec.Struct, frozen=True):
    config: _Blob
    layers: list[_Blob]


def put(image: ImageRef, registry: Path) -> bool:
    """Puts an image into the storage directory of a registry; False when the shelf does not have it whole."""
    try:
        manifest = (_folder("images") / image.id).read_text()
        parts = _parts(manifest)
        if any(_kept(part.digest).stat().st_size != part.size for part in parts):
            return False
        for digest in (manifest, *(part.digest for part in parts)):
            _link(_kept(digest), _stored(registry, digest))
    except (OSError, msgspec.MsgspecError):
        return False
    repository = registry / "docker/registry/v2/repositories" / image.name
    for part in parts:
        _point(repository / "_layers", part.digest)
    _point(repository / "_manifests/revisions", manifest)
    _point(repository / "_manifests/tags" / image.tag / "index", manifest)
    _write(repository / "_manifests/tags" / image.tag / "current/link", manifest)
    return True


def keep(image: ImageRef, manifest: str, registry: Path) -> None:
    """Keeps an image that a registry has stored under this digest; without room for it the next push is a slow one."""
    with suppress(OSError, msgspec.MsgspecError):
        _link(_stored(registry, manifest), _kept(manifest))
        for part in _parts(manifest):
            _kept(part.digest).unlink(missing_ok=True)  # what is there may be what could not be put
            _link(_stored(registry, part.digest), _kept(part.digest))
        _write(_folder("images") / image.id, manifest)


def tidy(images: Iterable[ImageRef]) -> None:
    """Lets go of everything that none of these images needs."""
    wanted = {image.id for image in images}
    needed: set[Path] = set()
    for note in _folder("images").iterdir():
        if note.name not in wanted:
            note.unlink(missing_ok=True)
            continue
        with suppress(OSError, msgspec.MsgspecError):
            manifest = note.read_text()
            needed |= {_kept(manifest), *(_kept(part.digest) for part in _parts(manifest))}
    for blob in _folder("blobs").iterdir():
        if blob not in needed:
            blob.unlink(missing_ok=True)


def _parts(manifest: str) -> list[_Blob]:
    """Settings and layers of an image that is kept."""
    found = msgspec.json.decode(_kept(manifest).read_bytes(), type=_Manifest)
    return [found.config, *found.layers]


def _folder(name: str) -> Path:
    return cache.folder(f"shelf/{name}")


def _kept(digest: str) -> Path:
    return _folder("blobs") / digest.replace(":", "-")


def _stored(registry: Path, digest: str) -> Path:
    kind, _, name = digest.partition(":")
    return registry / "docker/registry/v2/blobs" / kind / name[:2] / name / "data"


def _point(folder: Path, digest: str) -> None:
    _write(folder / digest.replace(":", "/") / "link", digest)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    replace(path, text, mode=0o644)


def _link(source: Path, target: Path) -> None:
    """Another name for the same content, which neither side ever changes; a copy where the file system has no links."""
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
    """All of it or nothing: what is half there would only take room on a disk that is full."""
    try:
        shutil.copyfile(source, target)
    except OSError:
        target.unlink(missing_ok=True)
        raise
