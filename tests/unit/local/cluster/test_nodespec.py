import pytest

from kubeslurm.local.cluster.nodespec import NodeSpec, Taint, nodes, parse
from kubeslurm.local.errors import LocalError


def test_plain_nodes_are_numbered_from_one() -> None:
    assert nodes(2, []) == [NodeSpec("node-1", 1), NodeSpec("node-2", 2)]


def test_groups_follow_the_plain_nodes_and_indices_are_continuous() -> None:
    assert [(node.name, node.index) for node in nodes(1, ["gpu:count=2", "cpu"])] == [
        ("node-1", 1),
        ("gpu-1", 2),
        ("gpu-2", 3),
        ("cpu-1", 4),
    ]


def test_a_group_has_labels_taints_and_resources() -> None:
    count, kind = parse(
        "gpu:count=2,label=a=b,label=x/y=,taint=k=v:NoSchedule,taint=k:NoExecute,resource=nvidia.com/gpu=8"
    )
    assert count == 2
    assert kind.labels == {"a": "b", "x/y": ""}
    assert kind.taints == (Taint("k", "v", "NoSchedule"), Taint("k", "", "NoExecute"))
    assert kind.resources == {"nvidia.com/gpu": "8"}


def test_zero_nodes_are_allowed() -> None:
    assert nodes(0, []) == []


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("GPU:count=1", "'GPU' is not a valid name for a node"),
        (":count=1", "'' is not a valid name for a node"),
        ("gpu:count=many", "'count=many'"),
        ("gpu:label=a", "KEY=VALUE"),
        ("gpu:label=a b=c", "KEY=VALUE"),
        ("gpu:taint=a=b", "KEY=VALUE:EFFECT"),
        ("gpu:taint=a=b:Never", "NoSchedule"),
        ("gpu:resource=gpu=8", "DOMAIN/NAME"),
        ("gpu:resource=nvidia.com/gpu=some", "WHOLE NUMBER"),
        ("gpu:size=3", "the fields are count=N"),
        ("gpu:size", "the fields are count=N"),
        ("gpu:count", "a whole number"),
    ],
)
def test_an_invalid_spec_is_rejected_with_a_description(spec: str, message: str) -> None:
    with pytest.raises(LocalError) as caught:
        nodes(0, [spec])
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("plain", "specs", "message"),
    [(-1, [], "-1 nodes"), (201, [], "--fake-nodes"), (1, ["node"], "named 'node'"), (0, ["a", "a"], "named 'a'")],
)
def test_impossible_node_counts_and_duplicate_names_are_rejected(plain: int, specs: list[str], message: str) -> None:
    with pytest.raises(LocalError, match=message):
        nodes(plain, specs)
