from importlib.util import find_spec

import pytest

from kubeslurm.local.cluster import cluster, init


@pytest.mark.parametrize("module", [cluster.INIT, init.LOCAL_CONTROLLER])
def test_modules_that_are_started_as_processes_exist(module: str) -> None:
    assert find_spec(module) is not None
