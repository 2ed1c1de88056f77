"""Where the recipes are that the local cluster is built from."""

from pathlib import Path

SOURCES = Path(__file__).resolve().parents[3]  # the repository: `local/`, `images/`
