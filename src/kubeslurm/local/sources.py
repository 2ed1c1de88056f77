"""Where the source tree is: images, charts and Go modules are built from it."""

from pathlib import Path

SOURCES = Path(__file__).resolve().parents[3]  # the root of the repository
