"""Images: what buildah is asked, and what a user is told when it fails."""

import json
from pathlib import Path

import pytest

from kubeslurm.local.errors import LocalError
from kubeslurm.local.host.progress import Progress, Step
from kubeslurm.local.host.tasks import Failed
from kubeslurm.local.images import build as images
from kubeslurm.local.images.build import ImageRef, Recipe
from kubeslurm.local.sources import SOURCES


def test_an_image_has_the_name_that_pods_use() -> None:
    assert str(ImageRef("slurmctld", "26.05")) == "localhost/slurmctld:26.05"


def test_a_recipe_becomes_buildah_options(tmp_path: Path) -> None:
    recipe = Recipe("slurmd", "26.05", tmp_path, target="slurmd")
    assert recipe.options() == [
        "--tag=localhost/slurmd:26.05",
        f"--file={tmp_path}/Containerfile",
        "--target=slurmd",
    ]


def test_a_missing_containerfile_is_said_before_anything_is_built(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match=r"There is no .*Containerfile"):
        images.build("x", tag="1", context=tmp_path, progress=Progress())


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("E: Unable to locate package sssd", "needs the Debian package sssd"),
        ("E: Package 'sssd' has no installation candidate", "needs the Debian package sssd"),
        ("write /x: No space left on device", "The disk is full"),
        ("Err: Temporary failure resolving 'm'", "apt-get update"),
        ("something else", "Building the image slurmd failed. It said:\n    something else"),
    ],
)
def test_a_failed_build_is_explained(said: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert told in str(images._explained("slurmd", Failed(["buildah"], 1, [said])))


def test_a_full_disk_is_said_even_when_the_build_did_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(images, "NEEDED_SPACE", 2**62)
    told = str(images._explained("base", Failed(["mmdebstrap"], 1, ["E: mmdebstrap failed to run"])))
    assert told.startswith("The disk is full: the image base cannot be built. Free some space below")


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("STEP 3/7: RUN apt-get update", "step 3 of 7, RUN"),
        ("[2/2] STEP 1/4: FROM scratch", "step 1 of 4, FROM"),
        ("--> 892ff425c00", ""),
    ],
)
def test_progress_follows_the_steps_of_the_containerfile(line: str, note: str) -> None:
    step = Step("build")
    images._follow(line, step)
    assert step.note == note


@pytest.mark.parametrize("recipe", sorted((SOURCES / "images").glob("*/Containerfile")), ids=lambda p: p.parent.name)
def test_containerfiles_are_ordinary_and_name_no_mirror(recipe: Path) -> None:
    text = recipe.read_text()
    first = next(line for line in text.splitlines() if line.startswith("FROM"))
    assert first.split()[1] in ("debian:forky-slim", "scratch")
    assert "sources.list" not in text
    assert "http://" not in text
    assert "ca.crt" not in text


def test_images_are_listed_newest_first_without_the_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert images.list() == []
    stored = [
        {"id": "a", "created": "2030-01-01T00:00:00Z", "names": ["localhost/x:1"]},
        {"id": "b", "created": "2030-01-03T00:00:00Z", "names": ["localhost/y:1", "elsewhere/z:1"]},
        {"id": "c", "created": "2030-01-02T00:00:00Z", "names": [images.BASE, "localhost/base:0"]},
        {"id": "d", "created": "2030-01-04T00:00:00Z"},
        {"id": "e", "created": "2030-01-03T00:00:00.5Z", "names": ["localhost/y:2"]},
        {"id": "f", "created": "2030-01-03T00:00:00.52Z", "names": ["localhost/y:3"]},
    ]
    index = tmp_path / "kubeslurm/storage/overlay-images/images.json"
    index.parent.mkdir(parents=True)
    index.write_text(json.dumps(stored))
    newest = ["localhost/y:3", "localhost/y:2", "localhost/y:1", "localhost/x:1"]
    assert [str(image) for image in images.list()] == newest
