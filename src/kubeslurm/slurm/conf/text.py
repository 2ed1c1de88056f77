"""The text of Slurm's configuration files, read as slurmctld reads it."""

import re
from collections.abc import Iterator

import msgspec

_ESCAPED = re.compile(r"\\(.?)")
_TRAILING = re.compile(r"\\*$")
_BLANK = re.compile(r"\s")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_PAIR = re.compile(r"""\s*([^\s=+\-/*]+)\s*([+\-/*]?)=\s*(?:"([^"]*)"|'([^']*)'|(\S*))""")


class Pair(msgspec.Struct, frozen=True):
    """`Key=Value` in the user's spelling; keys are compared by their lower-case form."""

    name: str
    value: str
    added: bool = False

    @property
    def key(self) -> str:
        return self.name.lower()


class Entry(msgspec.Struct, frozen=True):
    """One logical line: its pairs, and the rest of it that is not a pair."""

    line: int
    pairs: tuple[Pair, ...]
    rest: str = ""

    @property
    def first(self) -> Pair | None:
        return self.pairs[0] if self.pairs else None

    def get(self, key: str) -> str | None:
        """The value of a pair on this line, by its name in any case."""
        return next((pair.value for pair in reversed(self.pairs) if pair.key == key.lower()), None)


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments and with continuations joined, each with the number of its first line."""
    joined, start = "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = _without_comment(raw).rstrip()
        start = start or number
        if len(_TRAILING.findall(line)[0]) % 2:
            joined += line[:-1]
            continue
        joined += line
        if joined.strip():
            yield start, joined.strip()
        joined, start = "", 0
    if joined.strip():
        yield start, joined.strip()


def written(value: str) -> str | None:
    """A value as it must stand in a file for Slurm to read it back; None when there is no way to write it.

    Slurm ends a line at `#`, drops a backslash before any character, and takes blanks only between double quotes, for
    which it knows no escape.
    """
    if _UNPRINTABLE.search(value) or value.startswith('"'):
        return None
    escaped = value.replace("\\", "\\\\").replace("#", "\\#")
    if not _BLANK.search(value):
        return escaped
    return None if '"' in value else f'"{escaped}"'


def parse(text: str) -> list[Entry]:
    """Every logical line of a `Key=Value` file, in order."""
    return [_entry(number, line) for number, line in logical_lines(text)]


def values(entries: list[Entry]) -> dict[str, str]:
    """Single-valued settings by lower-case key: as in Slurm the last one wins, and `+=` adds to the value before."""
    result: dict[str, str] = {}
    for entry in entries:
        for pair in entry.pairs:
            before = result.get(pair.key)
            result[pair.key] = f"{before},{pair.value}" if pair.added and before else pair.value
    return result


def _entry(number: int, line: str) -> Entry:
    line = _ESCAPED.sub(r"\1", line)
    word = line.split(None, 1)
    if word[0].lower() == "include" and len(word) == 2 and not word[1].startswith("="):
        return Entry(line=number, pairs=(Pair(name="Include", value=word[1]),))
    pairs: list[Pair] = []
    position = 0
    while match := _PAIR.match(line, position):
        value = next((part for part in match.group(3, 4, 5) if part is not None), "")
        pairs.append(Pair(name=match[1], value=value, added=match[2] == "+"))
        position = match.end()
    return Entry(line=number, pairs=tuple(pairs), rest=line[position:].strip())


def _without_comment(line: str) -> str:
    escaped = False
    for position, char in enumerate(line):
        if char == "#" and not escaped:
            return line[:position]
        escaped = char == "\\" and not escaped
    return line
