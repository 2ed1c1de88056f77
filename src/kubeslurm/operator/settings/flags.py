"""Command-line flags the way Go programs take them, because existing Deployments pass them that way.

`--name value`, `--name=value`, one dash or two; a boolean stands alone or carries `=true` or `=false`.
"""

import difflib
from collections.abc import Collection, Sequence

import msgspec

TRUE = frozenset({"1", "t", "true"})
FALSE = frozenset({"0", "f", "false"})

# Flags of the Go operator without a counterpart in a Python process; accepted so that a Deployment can stay as it is.
INERT = {
    "enable-http2": "the servers speak HTTP/1.1 only",
    "profile": "there is no Go profiler; `py-spy dump --pid 1` shows what the process does",
    "profile-addr": "there is no Go profiler",
}
INERT_BOOLEANS = frozenset({"enable-http2", "profile", "zap-devel"})


class FlagError(ValueError):
    """A flag that cannot be understood, with the remedy."""


class Flags(msgspec.Struct, frozen=True):
    """Parsed flags by name, and what the user should be told about some of them."""

    values: dict[str, str]
    warnings: tuple[str, ...] = ()


def parse(argv: Sequence[str], known: Collection[str], booleans: Collection[str]) -> Flags:
    """Reads flags by name; the values stay text."""
    values: dict[str, str] = {}
    warnings: list[str] = []
    rest = list(argv)
    while rest:
        name, value = _split(rest.pop(0))
        inert = name in INERT or (name.startswith("zap-") and name not in known)
        if name not in known and not inert:
            raise FlagError(_unknown(name, known))
        if value is None:
            value = "true" if name in booleans or name in INERT_BOOLEANS else _following(name, rest, optional=inert)
        if inert:
            warnings.append(f"--{name} is accepted and has no effect" + (f": {INERT[name]}" if name in INERT else ""))
        else:
            values[name] = value
    return Flags(values, tuple(warnings))


def boolean(name: str, text: str) -> bool:
    """A truth value as Go writes it."""
    lowered = text.strip().lower()
    if lowered not in TRUE | FALSE:
        raise FlagError(f"{name} is {text!r}: write true or false.")
    return lowered in TRUE


def _split(argument: str) -> tuple[str, str | None]:
    if not argument.startswith("-") or argument in {"-", "--"}:
        raise FlagError(f"{argument!r} is not a flag: write --name=value.")
    name, equals, value = argument.removeprefix("-").removeprefix("-").partition("=")
    return name, value if equals else None


def _following(name: str, rest: list[str], *, optional: bool) -> str:
    if rest and not (optional and rest[0].startswith("-")):
        return rest.pop(0)
    if optional:
        return ""
    raise FlagError(f"--{name} needs a value: write --{name}=VALUE.")


def _unknown(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=1)
    hint = f"did you mean --{near[0]}?" if near else "--help lists all of them."
    return f"there is no flag --{name}: {hint}"
