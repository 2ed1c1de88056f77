"""What a benchmark has measured, for people and for programs."""

from collections.abc import Sequence
from pathlib import Path

import msgspec


class Row(msgspec.Struct, frozen=True):
    """One measured value."""

    metric: str
    value: float
    unit: str


def write(rows: Sequence[Row], file: Path | None) -> None:
    """Writes the rows as JSON, where a file is wanted."""
    if file is not None:
        file.write_bytes(msgspec.json.format(msgspec.json.encode(rows), indent=2))
