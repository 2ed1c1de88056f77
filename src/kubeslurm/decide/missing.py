"""What an object refers to and does not exist, or cannot be read."""

from typing import Literal

import msgspec


class Missing(msgspec.Struct, frozen=True):
    """One reference that leads nowhere; without a name the field itself is not set."""

    kind: Literal["Secret", "ConfigMap", "Accounting", "Controller"]
    namespace: str
    name: str
    field: str = ""  # of the spec
    key: str = ""  # of a Secret


class Undecoded(msgspec.Struct, frozen=True):
    """One object that exists and cannot be decoded, so that nothing may be concluded from it."""

    kind: str
    namespace: str
    name: str
    error: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"
