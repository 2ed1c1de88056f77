"""Paths that the documents name."""

import re
from pathlib import Path

import pytest

from kubeslurm.local.sources import SOURCES

PATH = re.compile(r"`((?:[\w<>-]+/)+[\w<>.-]*)`")
ROOTS = (SOURCES, SOURCES / "src" / "kubeslurm")
TOP = {path.name for root in ROOTS for path in root.iterdir()}
PAGES = [SOURCES / "README.md", SOURCES / "CONTRIBUTING.md", *sorted((SOURCES / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_into_the_repository_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = {
        found for found in PATH.findall(text) if found.split("/")[0] in TOP and "<" not in found and "NAME" not in found
    }
    assert sorted(path for path in named if not any((root / path).exists() for root in ROOTS)) == []
