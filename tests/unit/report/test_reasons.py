"""Programs rely on the list of reasons, so it has to be written down whole."""

import re

from kubeslurm.local.sources import SOURCES
from kubeslurm.report import conditions, nodeset

TEXT = (SOURCES / "docs" / "configuration.md").read_text()
EVENT = re.compile(r"""events\.(?:normal|warning)\(\s*\w+,\s*"(\w+)""")


def test_every_reason_of_a_condition_is_in_the_documentation() -> None:
    reasons = [*conditions.Reason, *nodeset.Reason]
    assert [reason for reason in reasons if f"`{reason}`" not in TEXT] == []


def test_every_event_is_in_the_documentation() -> None:
    rooms = (SOURCES / "src" / "kubeslurm" / room for room in ("control", "reconcile"))
    sources = (path for room in rooms for path in room.rglob("*.py"))
    events = {event for path in sources for event in EVENT.findall(path.read_text())}
    assert "RestartNeeded" in events
    assert [event for event in sorted(events) if f"`{event}`" not in TEXT] == []
