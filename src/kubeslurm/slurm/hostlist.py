"""Slurm's hostlist notation: `gpu-[0-3,007]` for many node names in one string."""

import re
from collections.abc import Iterable

from kubeslurm.slurm.errors import SlurmError

_NAME = re.compile(r"^(.*?)(\d+)(\D*)$", re.DOTALL)
# Names with longer numbers are not put into ranges: Slurm refuses such ranges.
_DIGITS = 18
_LIMIT = 65536


class BadHostlist(SlurmError, ValueError):  # noqa: N818 (a cause, as in errors.py)
    """Not a hostlist."""


def expand(text: str) -> list[str]:
    """All names in a hostlist, in order, duplicates kept."""
    return [name for part in _split(text) for name in _expand_one(part)]


def compress(names: Iterable[str]) -> str:
    """The shortest hostlist of bracketed ranges for the given names, sorted, without duplicates."""
    groups: dict[tuple[str, str, int], set[int]] = {}
    plain: set[str] = set()
    for name in set(names):
        match = _NAME.match(name)
        if match is None or len(match[2]) > _DIGITS:
            plain.add(name)
            continue
        # A number without leading zeros is the same at any width, so that all of them share one group.
        width = len(match[2]) if match[2].startswith("0") and len(match[2]) > 1 else 0
        groups.setdefault((match[1], match[3], width), set()).add(int(match[2]))
    parts = [_group(prefix, suffix, width, numbers) for (prefix, suffix, width), numbers in groups.items()]
    return ",".join(sorted([*plain, *parts]))


def chunks(names: Iterable[str], size: int = 1000) -> list[list[str]]:
    """Names in batches, one per bulk call, so that URLs and RPCs stay short."""
    ordered = list(dict.fromkeys(names))
    return [ordered[start : start + size] for start in range(0, len(ordered), size)]


def _group(prefix: str, suffix: str, width: int, numbers: set[int]) -> str:
    spans = _spans(sorted(numbers), width)
    if len(numbers) == 1:
        return f"{prefix}{spans[0]}{suffix}"
    return f"{prefix}[{','.join(spans)}]{suffix}"


def _spans(numbers: list[int], width: int) -> list[str]:
    spans: list[str] = []
    start = previous = numbers[0]
    for number in [*numbers[1:], None]:
        if number is not None and number == previous + 1 and len(f"{number:0{width}}") == len(f"{previous:0{width}}"):
            previous = number
            continue
        spans.append(f"{start:0{width}}" if start == previous else f"{start:0{width}}-{previous:0{width}}")
        if number is not None:
            start = previous = number
    return spans


def _split(text: str) -> list[str]:
    parts: list[str] = []
    depth = 0
    current = ""
    for char in text:
        if char == "," and depth == 0:
            parts.append(current)
            current = ""
            continue
        depth += {"[": 1, "]": -1}.get(char, 0)
        if depth not in (0, 1):
            raise BadHostlist(f"hostlist {text!r}: brackets do not match")
        current += char
    if depth:
        raise BadHostlist(f"hostlist {text!r}: a bracket is not closed")
    return [part.strip() for part in [*parts, current] if part.strip()]


def _expand_one(part: str) -> list[str]:
    prefix, opened, rest = part.partition("[")
    if not opened:
        return [prefix]
    inside, _, tail = rest.partition("]")
    tails = _expand_one(tail)
    return [prefix + number + end for number in _numbers(inside, part) for end in tails]


def _numbers(inside: str, part: str) -> list[str]:
    numbers: list[str] = []
    for span in inside.split(","):
        first, dash, last = span.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise BadHostlist(f"hostlist {part!r}: {span!r} is not a number or a range")
        low, high = int(first), int(last or first)
        if high < low or high - low >= _LIMIT:
            raise BadHostlist(f"hostlist {part!r}: the range {span!r} is empty or longer than {_LIMIT}")
        numbers.extend(str(number).zfill(len(first)) for number in range(low, high + 1))
    return numbers
