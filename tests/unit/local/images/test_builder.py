from pathlib import Path

import pytest

from kubeslurm.local.errors import LocalError
from kubeslurm.local.host.progress import Progress, Step
from kubeslurm.local.host.tasks import CommandError, Tasks
from kubeslurm.local.images import builder
from kubeslurm.local.images.builder import BuildSpec
from kubeslurm.local.sources import SOURCES


def test_a_build_spec_becomes_options_of_buildah(tmp_path: Path) -> None:
    spec = BuildSpec("slurmd", "26.05", tmp_path, target="slurmd")
    assert spec.options() == [
        "--tag=localhost/slurmd:26.05",
        f"--file={tmp_path}/Containerfile",
        "--target=slurmd",
    ]


def test_a_missing_containerfile_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match=r"There is no .*Containerfile"):
        builder.build(BuildSpec("x", "1", tmp_path), tasks=Tasks(), progress=Progress())


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("E: Unable to locate package sssd", "needs the Debian package sssd"),
        ("E: Package 'sssd' has no installation candidate", "needs the Debian package sssd"),
        ("write /x: No space left on device", "The disk is full"),
        ("Err: Temporary failure resolving 'm'", "apt-get update"),
        ("something else", "Building the image slurmd failed. Its output:\n    something else"),
    ],
)
def test_the_error_of_a_failed_build_names_the_cause(
    output: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert message in str(builder._explain("slurmd", CommandError(["buildah"], 1, [output])))


def test_a_full_disk_is_reported_even_if_the_build_did_not_report_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(builder, "REQUIRED_SPACE", 2**62)
    message = str(builder._explain("base", CommandError(["mmdebstrap"], 1, ["E: mmdebstrap failed to run"])))
    assert message.startswith("The disk is full: the image base cannot be built. Free some space below")


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("STEP 3/7: RUN apt-get update", "step 3 of 7, RUN"),
        ("[2/2] STEP 1/4: FROM scratch", "step 1 of 4, FROM"),
        ("--> 892ff425c00", ""),
    ],
)
def test_progress_shows_the_steps_of_the_containerfile(line: str, note: str) -> None:
    step = Step("build")
    builder._show_step(line, step)
    assert step.note == note


@pytest.mark.parametrize(
    "containerfile", sorted((SOURCES / "images").glob("*/Containerfile")), ids=lambda p: p.parent.name
)
def test_containerfiles_start_from_the_base_image_and_name_no_mirror(containerfile: Path) -> None:
    text = containerfile.read_text()
    first = next(line for line in text.splitlines() if line.startswith("FROM"))
    assert first.split()[1] in ("debian:forky-slim", "scratch")
    assert "sources.list" not in text
    assert "http://" not in text
    assert "ca.crt" not in text
