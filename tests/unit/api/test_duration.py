"""Durations as Go writes them."""

import re
from datetime import timedelta

import pytest

from kubeslurm.api.duration import PATTERN, parse_duration


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("0", timedelta()),
        ("0s", timedelta()),
        ("30m", timedelta(minutes=30)),
        ("1h30m", timedelta(minutes=90)),
        ("1.5h", timedelta(minutes=90)),
        ("24h0m0s", timedelta(days=1)),
        ("500ms", timedelta(milliseconds=500)),
        ("1us", timedelta(microseconds=1)),
    ],
)
def test_durations_are_read(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration
    assert re.match(PATTERN, text)


def test_a_sign_is_read_though_no_field_takes_it() -> None:
    assert parse_duration("-5m") == -timedelta(minutes=5)
    assert not re.match(PATTERN, "-5m")


@pytest.mark.parametrize("text", ["", "7d", "half an hour", "5", "5 m", "m", "1h30", "1h 30m"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    assert not re.match(PATTERN, text)
    with pytest.raises(ValueError, match="write it like 30m"):
        parse_duration(text)
