"""Go's durations ("1h30m", "90s"), as Kubernetes writes them."""

import re
from datetime import timedelta

PATTERN = r"^(0|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$"
"""What a duration field of ours may hold: Go's own form without a sign."""

_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_duration(text: str) -> timedelta:
    """Reads a Go duration; raises ValueError on anything else."""
    sign, body = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if body == "0":
        return timedelta()
    parts = list(_PART.finditer(body))
    if not parts or "".join(part.group() for part in parts) != body:
        raise ValueError(f"{text!r} is not a duration: write it like 30m, 90s or 1h30m")
    return sign * timedelta(seconds=sum(float(part[1]) * _SECONDS[part[2]] for part in parts))
