import json
from pathlib import Path

import pytest

from kubeslurm.local.images import store
from kubeslurm.local.images.store import ImageRef


def test_an_image_has_the_name_that_pods_use() -> None:
    assert str(ImageRef("slurmctld", "26.05")) == "localhost/slurmctld:26.05"


def test_images_are_listed_newest_first_without_the_base_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert store.list_images() == []
    stored = [
        {"id": "a", "created": "2030-01-01T00:00:00Z", "names": ["localhost/x:1"]},
        {"id": "b", "created": "2030-01-03T00:00:00Z", "names": ["localhost/y:1", "elsewhere/z:1"]},
        {"id": "c", "created": "2030-01-02T00:00:00Z", "names": [store.BASE, "localhost/base:0"]},
        {"id": "d", "created": "2030-01-04T00:00:00Z"},
        {"id": "e", "created": "2030-01-03T00:00:00.5Z", "names": ["localhost/y:2"]},
        {"id": "f", "created": "2030-01-03T00:00:00.52Z", "names": ["localhost/y:3"]},
    ]
    index = tmp_path / "kubeslurm/storage/overlay-images/images.json"
    index.parent.mkdir(parents=True)
    index.write_text(json.dumps(stored))
    newest = ["localhost/y:3", "localhost/y:2", "localhost/y:1", "localhost/x:1"]
    assert [str(image) for image in store.list_images()] == newest
