"""Images kept from one cluster to the next; the storage directories are laid out as a registry does it."""

import errno
import json
import shutil
from pathlib import Path

import pytest

from kubeslurm.cli.up import image_cache
from kubeslurm.local.images.build import ImageRef

IMAGE = ImageRef("slurmd", "abc", "1d")
BLOBS = "docker/registry/v2/blobs/sha256"
REPOSITORY = "docker/registry/v2/repositories/slurmd"
MANIFEST, SETTINGS, LAYER = ("sha256:" + letter * 64 for letter in "ace")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def pushed(tmp_path: Path) -> Path:
    """The storage of a registry that was sent an image."""
    registry = tmp_path / "first"
    parts = [{"digest": SETTINGS, "size": 2}, {"digest": LAYER, "size": 5}]
    manifest = json.dumps({"schemaVersion": 2, "config": parts[0], "layers": parts[1:]})
    for digest, text in ((MANIFEST, manifest), (SETTINGS, "{}"), (LAYER, "layer")):
        stored(registry, digest).parent.mkdir(parents=True)
        stored(registry, digest).write_text(text)
    return registry


def stored(registry: Path, digest: str) -> Path:
    name = digest.removeprefix("sha256:")
    return registry / BLOBS / name[:2] / name / "data"


def blobs(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_an_image_that_was_pushed_once_is_put_into_the_next_registry(pushed: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    assert not image_cache.put(IMAGE, second)
    image_cache.keep(IMAGE, MANIFEST, pushed)
    assert image_cache.put(IMAGE, second)
    for digest in (MANIFEST, SETTINGS, LAYER):
        assert stored(second, digest).samefile(stored(pushed, digest))
    assert (second / REPOSITORY / "_manifests/tags/abc/current/link").read_text() == MANIFEST
    assert (second / REPOSITORY / "_manifests/tags/abc/index" / MANIFEST.replace(":", "/") / "link").exists()
    assert (second / REPOSITORY / "_manifests/revisions" / MANIFEST.replace(":", "/") / "link").exists()
    assert (second / REPOSITORY / "_layers" / LAYER.replace(":", "/") / "link").read_text() == LAYER


def test_another_image_of_the_same_name_and_tag_is_not_taken_for_it(pushed: Path, tmp_path: Path) -> None:
    image_cache.keep(IMAGE, MANIFEST, pushed)
    assert not image_cache.put(ImageRef("slurmd", "abc", "2e"), tmp_path / "second")
    assert not image_cache.put(ImageRef("slurmd", "abc"), tmp_path / "second")


def test_a_damaged_image_is_not_put_and_is_mended_by_the_next_push(pushed: Path, tmp_path: Path) -> None:
    image_cache.keep(IMAGE, MANIFEST, pushed)
    kept = next(path for path in blobs(tmp_path / "cache") if path.samefile(stored(pushed, LAYER)))
    kept.unlink()
    kept.write_text("lay")
    assert not image_cache.put(IMAGE, tmp_path / "second")
    image_cache.keep(IMAGE, MANIFEST, pushed)
    assert image_cache.put(IMAGE, tmp_path / "second")
    assert stored(tmp_path / "second", LAYER).read_text() == "layer"


def test_a_registry_that_lost_the_image_is_not_kept(pushed: Path, tmp_path: Path) -> None:
    stored(pushed, LAYER).unlink()
    image_cache.keep(IMAGE, MANIFEST, pushed)
    assert not image_cache.put(IMAGE, tmp_path / "second")


def test_a_copy_that_finds_no_room_is_not_left_behind(
    pushed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def across(_target: Path, _source: Path) -> None:
        raise OSError(errno.EXDEV, "another file system")

    def fill(_source: Path, target: Path) -> None:
        target.write_text("lay")
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(Path, "hardlink_to", across)
    monkeypatch.setattr(shutil, "copyfile", fill)
    image_cache.keep(IMAGE, MANIFEST, pushed)
    assert blobs(tmp_path / "cache") == []


def test_only_what_is_still_needed_stays(pushed: Path, tmp_path: Path) -> None:
    image_cache.keep(IMAGE, MANIFEST, pushed)
    image_cache.tidy([IMAGE])
    assert image_cache.put(IMAGE, tmp_path / "second")
    image_cache.tidy([ImageRef("slurmd", "abc", "2e")])
    assert not blobs(tmp_path / "cache")
    assert stored(pushed, LAYER).read_text() == "layer"
