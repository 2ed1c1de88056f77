from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from tests.support.kubernetes import Kubernetes
from tests.support.places import kubelet_stopped, powered_off
from tests.support.slurm import Slurm

Outage = Callable[[Slurm, str], AbstractContextManager[None]]


class OnNode2(Slurm):
    """A Slurm cluster whose slurmctld is on node-2; nobody may touch its Kubernetes cluster, which does not exist."""

    def find(self, kind: str, name: str) -> dict[str, Any]:
        return {"spec": {"nodeName": "node-2"}}


@pytest.fixture
def slurm() -> Slurm:
    return OnNode2(Kubernetes("missing"))


@pytest.mark.parametrize("outage", [powered_off, kubelet_stopped])
def test_the_node_of_slurmctld_is_not_taken_by_chance(slurm: Slurm, outage: Outage) -> None:
    with pytest.raises(AssertionError, match="slurmctld is on node-2: choose the node"), outage(slurm, "node-2"):
        pass


def test_another_node_is_not_taken_for_that_of_slurmctld(slurm: Slurm) -> None:
    wanted = powered_off(slurm, "node-1", with_slurmctld=True)
    with pytest.raises(AssertionError, match="slurmctld is not on node-1"), wanted:
        pass
