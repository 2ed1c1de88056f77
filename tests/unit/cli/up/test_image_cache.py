import errno
import json
import shutil
from pathlib import Path

import pytest

from kubeslurm.cli.up import image_cache
from kubeslurm.local.images.store import ImageRef

IMAGE = ImageRef("slurmd", "abc", "1d")
BLOBS = "docker/registry/v2/blobs/sha256"
REPOSITORY = "docker/registry/v2/repositories/slurmd"
MANIFEST, CONFIG, LAYER = ("sha256:" + letter * 64 for letter in "ace")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def pushed(tmp_path: Path) -> Path:
    """The storage directory of a registry that an image was pushed to."""
    registry = tmp_path / "first"
    blobs = [{"digest": CONFIG, "size": 2}, {"digest": LAYER, "size": 5}]
    manifest = json.dumps({"schemaVersion": 2, "config": blobs[0], "layers": blobs[1:]})
    for digest, text in ((MANIFEST, manifest), (CONFIG, "{}"), (LAYER, "layer")):
        stored(registry, digest).parent.mkdir(parents=True)
        stored(registry, digest).write_text(text)
    return registry


def stored(registry: Path, digest: str) -> Path:
    name = digest.removeprefix("sha256:")
    return registry / BLOBS / name[:2] / name / "data"


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_an_image_that_was_pushed_once_is_restored_into_another_registry(pushed: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    assert not image_cache.restore(IMAGE, second)
    image_cache.save(IMAGE, MANIFEST, pushed)
    assert image_cache.restore(IMAGE, second)
    for digest in (MANIFEST, CONFIG, LAYER):
        assert stored(second, digest).samefile(stored(pushed, digest))
    assert (second / REPOSITORY / "_manifests/tags/abc/current/link").read_text() == MANIFEST
    assert (second / REPOSITORY / "_manifests/tags/abc/index" / MANIFEST.replace(":", "/") / "link").exists()
    assert (second / REPOSITORY / "_manifests/revisions" / MANIFEST.replace(":", "/") / "link").exists()
    assert (second / REPOSITORY / "_layers" / LAYER.replace(":", "/") / "link").read_text() == LAYER


def test_an_image_of_the_same_name_and_tag_with_another_id_is_not_restored(pushed: Path, tmp_path: Path) -> None:
    image_cache.save(IMAGE, MANIFEST, pushed)
    assert not image_cache.restore(ImageRef("slurmd", "abc", "2e"), tmp_path / "second")
    assert not image_cache.restore(ImageRef("slurmd", "abc"), tmp_path / "second")


def test_a_damaged_image_is_not_restored_and_the_next_push_replaces_it(pushed: Path, tmp_path: Path) -> None:
    image_cache.save(IMAGE, MANIFEST, pushed)
    cached = next(path for path in files(tmp_path / "cache") if path.samefile(stored(pushed, LAYER)))
    cached.unlink()
    cached.write_text("lay")
    assert not image_cache.restore(IMAGE, tmp_path / "second")
    image_cache.save(IMAGE, MANIFEST, pushed)
    assert image_cache.restore(IMAGE, tmp_path / "second")
    assert stored(tmp_path / "second", LAYER).read_text() == "layer"


def test_an_image_with_a_missing_layer_is_not_cached(pushed: Path, tmp_path: Path) -> None:
    stored(pushed, LAYER).unlink()
    image_cache.save(IMAGE, MANIFEST, pushed)
    assert not image_cache.restore(IMAGE, tmp_path / "second")


def test_an_incomplete_copy_is_deleted_if_the_disk_is_full(
    pushed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_to_link(_target: Path, _source: Path) -> None:
        raise OSError(errno.EXDEV, "another file system")

    def fail_to_copy(_source: Path, target: Path) -> None:
        target.write_text("lay")
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(Path, "hardlink_to", fail_to_link)
    monkeypatch.setattr(shutil, "copyfile", fail_to_copy)
    image_cache.save(IMAGE, MANIFEST, pushed)
    assert files(tmp_path / "cache") == []


def test_prune_deletes_what_no_image_needs(pushed: Path, tmp_path: Path) -> None:
    image_cache.save(IMAGE, MANIFEST, pushed)
    image_cache.prune([IMAGE])
    assert image_cache.restore(IMAGE, tmp_path / "second")
    image_cache.prune([ImageRef("slurmd", "abc", "2e")])
    assert not files(tmp_path / "cache")
    assert stored(pushed, LAYER).read_text() == "layer"
