"""Programs rely on the reasons of conditions and events, so each of them is documented."""

import re

import pytest

from kubeslurm.local.sources import SOURCES
from kubeslurm.report.events import Event
from kubeslurm.report.reasons import Reason

ROW = re.compile(r"^\| ((?:`\w+`(?:, )?)+) \|", re.MULTILINE)
CAMEL_CASE = re.compile(r"([A-Z][a-z]+)+")


def documented(heading: str) -> list[str]:
    """The names in the first column of the table below a heading of docs/api.md."""
    text = (SOURCES / "docs" / "api.md").read_text()
    section = text.partition(f"\n{heading}\n")[2].partition("\n#")[0]
    return sorted(name for row in ROW.findall(section) for name in re.findall(r"`(\w+)`", row))


def test_the_documentation_lists_every_reason_of_a_condition_once() -> None:
    assert documented("### Reasons") == sorted(Reason)


def test_the_documentation_lists_every_event_once() -> None:
    assert documented("### Events") == sorted(Event)


@pytest.mark.parametrize("name", [*Reason, *Event])
def test_a_reason_is_one_word_in_camel_case(name: str) -> None:
    assert CAMEL_CASE.fullmatch(name)


def test_every_reason_and_event_is_used() -> None:
    paths = (SOURCES / "src" / "kubeslurm").rglob("*.py")
    used = set(re.findall(r"\b((?:Reason|Event)\.\w+)", "".join(path.read_text() for path in paths)))
    unused = {f"{type(name).__name__}.{name.name}" for name in (*Reason, *Event)} - used
    assert unused == set()
