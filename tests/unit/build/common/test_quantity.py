"""Kubernetes quantities."""

import pytest

from kubeslurm.build.common import quantity


@pytest.mark.parametrize(
    ("text", "cores", "mebibytes"),
    [
        ("1", 1, 0),
        ("7500m", 8, 0),
        (0, 0, 0),
        ("0.5", 1, 0),
        (3, 3, 0),
        ("32Gi", 34359738368, 32768),
        ("1G", 10**9, 953),
    ],
)
def test_limits_are_rounded_on_the_safe_side(text: str | int, cores: int, mebibytes: int) -> None:
    assert (quantity.cores(text), quantity.mebibytes(text)) == (cores, mebibytes)


@pytest.mark.parametrize("text", ["", "many", "1Zi", "--1"])
def test_a_wrong_quantity_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        quantity.parse(text)
