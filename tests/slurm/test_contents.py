"""What the images carry besides programs: the list of what went into them, and its licences."""

import pytest

from tests.slurm.lab import Roots


@pytest.mark.parametrize("daemon", Roots._fields)
def test_an_image_lists_its_packages_and_keeps_the_copyright_of_each(roots: Roots, daemon: str) -> None:
    share = getattr(roots, daemon) / "usr" / "share"
    lines = (share / "kubeslurm" / "packages.txt").read_text().splitlines()
    versions = dict(line.split(" ", 1) for line in lines)
    assert versions[daemon] == versions["slurm-client"]
    assert [name for name in versions if not (share / "doc" / name / "copyright").is_file()] == []
    kept = {path.name for path in (share / "doc").rglob("*") if path.is_file()}
    assert kept == {"copyright"}
