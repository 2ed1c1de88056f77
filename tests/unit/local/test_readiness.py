import pytest

from kubeslurm.local import readiness
from kubeslurm.local.errors import LocalError


def test_a_few_watches_are_always_there() -> None:
    readiness.check_watches(0)


def test_too_many_watches_are_refused_with_a_remedy() -> None:
    with pytest.raises(LocalError, match="max_user_instances"):
        readiness.check_watches(1_000_000)
