import pytest

from kubeslurm.local import limits
from kubeslurm.local.errors import LocalError


def test_a_few_watches_are_always_there() -> None:
    limits.check_watches(1)


def test_too_many_watches_are_refused_with_a_remedy() -> None:
    with pytest.raises(LocalError, match="max_user_instances"):
        limits.check_watches(1_000_000)
