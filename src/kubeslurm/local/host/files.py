"""Writes files atomically, and keeps structs in them as JSON."""

import os
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")


def write(path: Path, data: bytes | str, mode: int = 0o600) -> None:
    """Replace a file atomically; it has its mode from the start."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())
        temporary.rename(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def save(path: Path, value: object) -> None:
    """Write a value as JSON, atomically."""
    write(path, msgspec.json.encode(value, enc_hook=str))


def load(path: Path, kind: type[T]) -> T | None:
    """Read a value that was saved as JSON; None if the file is missing or does not fit the type."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind, dec_hook=lambda _, text: Path(text))
    except (FileNotFoundError, msgspec.DecodeError):
        return None
