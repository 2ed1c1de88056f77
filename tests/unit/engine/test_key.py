from kubeslurm.engine.key import Key


def test_a_key_is_written_as_in_kubectl() -> None:
    assert str(Key("ns", "name")) == "ns/name"
    assert str(Key("", "node-1")) == "node-1"
    for text in ("ns/name", "node-1"):
        assert str(Key.parse(text)) == text
