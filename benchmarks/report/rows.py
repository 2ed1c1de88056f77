"""Results of benchmarks, and how they are written to a file."""

from collections.abc import Sequence
from pathlib import Path

import msgspec


class Row(msgspec.Struct, frozen=True):
    """One measured value."""

    metric: str
    value: float
    unit: str


def write(rows: Sequence[Row], file: Path | None) -> None:
    """Write the rows as JSON, if a file is given."""
    if file is not None:
        file.write_bytes(msgspec.json.format(msgspec.json.encode(rows), indent=2))
