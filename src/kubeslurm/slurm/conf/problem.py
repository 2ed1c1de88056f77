"""A finding in a configuration file."""

from typing import Literal

import msgspec


class Problem(msgspec.Struct, frozen=True):
    """One finding; `line` is 0 when it is about the file as a whole."""

    file: str
    line: int
    message: str
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.message}"
