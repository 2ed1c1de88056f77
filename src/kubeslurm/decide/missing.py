"""What an object refers to and does not exist."""

from typing import Literal

import msgspec


class Missing(msgspec.Struct, frozen=True):
    """One reference that leads nowhere; without a name the field itself is not set."""

    kind: Literal["Secret", "ConfigMap", "Accounting", "Controller"]
    namespace: str
    name: str
    field: str = ""  # of the spec
    key: str = ""  # of a Secret
