"""The envelope of a watch event, as kube-apiserver writes it and in any other form."""

import msgspec
import pytest

from kubeslurm.kube.transport.stream import frame


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"ADDED","object":{"metadata":{"name":"a","object":{}}}}',
        b'{"type": "ADDED", "object": {"metadata":{"name":"a","object":{}}}}',
        b'{"object":{"metadata":{"name":"a","object":{}}},"type":"ADDED"}',
        b'{"type":"ADDED","object":{"metadata":{"name":"a","object":{}}}} ',
    ],
)
def test_type_and_object_are_found_in_any_form(line: bytes) -> None:
    event = frame(line)
    assert event.type == "ADDED"
    assert msgspec.json.decode(event.object) == {"metadata": {"name": "a", "object": {}}}


@pytest.mark.parametrize("line", [b"", b'{"type":"ADDED"}', b'{"type":"ADDED","object":', b"nonsense"])
def test_a_line_that_is_not_an_event_is_an_error(line: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        frame(line)
