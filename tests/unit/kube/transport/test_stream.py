"""The envelope of a watch event, in the form of kube-apiserver and in any other."""

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
def test_type_and_object_are_found_however_they_are_written(line: bytes) -> None:
    event = frame(line)
    assert event.type == "ADDED"
    assert msgspec.json.decode(event.object) == {"metadata": {"name": "a", "object": {}}}


@pytest.mark.parametrize("line", [b"", b'{"type":"ADDED"}', b'{"type":"ADDED","object":', b"nonsense"])
def test_what_is_no_event_is_an_error(line: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        frame(line)
